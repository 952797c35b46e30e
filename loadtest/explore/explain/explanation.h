/* The explanation of a schedule: why it oversold, or what else it broke, in sentences. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXPLAIN_EXPLANATION_H
#define OVERSELL_LOADTEST_EXPLORE_EXPLAIN_EXPLANATION_H

#include "loadtest/explore/exec/execution.h"

/* Explains the schedule that EXECUTION has just ended, in RET_TEXT of SIZE bytes: faults, the lost update if there is one,
 * the units sold, and every other invariant that is broken. */
void explain_execution(const struct execution *execution, char *ret_text, size_t size);

#endif
