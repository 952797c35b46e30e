/* Says in one sentence why a schedule of requests went wrong, as far as their statements show it. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_CAUSE_H
#define OVERSELL_LOADTEST_OWN_CAUSE_H

#include "loadtest/own/schedules/request_runner.h"
#include "loadtest/stats/verdict.h"

enum { CAUSE_TEXT = 600 };

/* Writes the cause of VERDICT, and what to change, to RET_TEXT. Statements are named by their number in the record, from 1. It looks for a
 * request that reads a table before the change of another one is committed, and that also writes; where none does, it says that it did
 * not recognize the cause. */
void cause_of(const struct run_record *record, enum verdict verdict, char ret_text[static CAUSE_TEXT]);

#endif
