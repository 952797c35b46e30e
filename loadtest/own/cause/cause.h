/* Says in one sentence why a schedule of requests went wrong, as far as their statements show it. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_CAUSE_CAUSE_H
#define OVERSELL_LOADTEST_OWN_CAUSE_CAUSE_H

#include "loadtest/own/cause/run_shapes.h"
#include "loadtest/stats/verdict.h"

/* Writes the cause of VERDICT, and what to change, to RET_TEXT. Statements are named by their number in the record, from 1. Each sentence says
 * only what the statements, their answers and the answers of the service show; where they do not show the cause, it says so, and quotes the
 * first two statements that differ. One thread only. */
void cause_of(const struct run_record *record, enum verdict verdict, char ret_text[static CAUSE_TEXT]);

#endif
