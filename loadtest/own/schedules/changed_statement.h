/* Finds out whether a service sends other statements than when a schedule was saved: the steps of a schedule are numbers of statements, so
 * one more SELECT moves them. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_SCHEDULES_CHANGED_STATEMENT_H
#define OVERSELL_LOADTEST_OWN_SCHEDULES_CHANGED_STATEMENT_H

#include "loadtest/own/schedules/request_runner.h"

#include <jansson.h>
#include <stdbool.h>

/* Room for both statements as a whole: JSON has no part of a character. */
enum { CHANGED_TEXT = 2 * MESSAGE_TEXT + 300 };

/* Compares the statements of each request in RECORD with those in SAVED, the steps of a saved schedule. Numbers, quoted texts and parameters
 * may differ; of a command to Redis, only the name is compared. A request that ends its transaction earlier and sends no more SQL is not
 * different: it was refused. RET_TEXT: what the first different statement is, and what to do; empty: there is none. */
void changed_statement(const json_t *saved, const struct run_record *record,
                       char ret_text[static CHANGED_TEXT]);

#endif
