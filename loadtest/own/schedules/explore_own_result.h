/* The result of `loadtest explore shop.json`: counterexamples as JSON and as text, and the table of verdicts. */
#ifndef OVERSELL_LOADTEST_OWN_SCHEDULES_EXPLORE_OWN_RESULT_H
#define OVERSELL_LOADTEST_OWN_SCHEDULES_EXPLORE_OWN_RESULT_H

#include "loadtest/own/schedules/request_runner.h"
#include "loadtest/report/table.h"
#include "loadtest/stats/verdict.h"

#include <jansson.h>

/* What RECORD, a run of SCHEDULE by REQUESTS requests, did: its statements with their answers, waits and stock, the answers to the requests,
 * and the cause if VERDICT is not clean. NULL when out of memory. */
json_t *explored_schedule(const struct run_record *record, const char *schedule, size_t requests,
                          enum verdict verdict);
/* Prints such a schedule with a column for each request, and its cause if SAYS_CAUSE. */
void explored_print(FILE *stream, const json_t *schedule, bool says_cause);

extern const struct result_kind explore_own_result;

/* The pictures of a report; see struct result_kind. */
json_t *explore_own_charts(const json_t *document);

#endif
