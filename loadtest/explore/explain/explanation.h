/* Why a schedule went wrong, in sentences. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXPLAIN_EXPLANATION_H
#define OVERSELL_LOADTEST_EXPLORE_EXPLAIN_EXPLANATION_H

#include "loadtest/explore/exec/execution.h"

/* Says what the play that has ended came to, and where two orders contradict each other, how. */
void explain_execution(const struct execution *execution, char *ret_text, size_t size);

#endif
