/* What is kept of a rush: its row of the result, and its latencies as files for hdrplot. */
#ifndef OVERSELL_LOADTEST_OPENLOOP_RUSH_ROW_H
#define OVERSELL_LOADTEST_OPENLOOP_RUSH_ROW_H

#include "loadtest/openloop/rush_run.h"
#include "loadtest/report/table.h"

#include <jansson.h>

/* The row of one strategy; NULL when out of memory. */
json_t *rush_row_new(const struct testbed *testbed, const struct rush_plan *plan,
                     const struct subject *subject, const struct rush *rush);

/* The folder can be written into; it is made if it is not there. Says on stderr why not. */
bool rush_folder_valid(const char *folder);
/* Writes FOLDER/STRATEGY.ANSWER.hgrm for every kind of answer that there was; false, having said why on stderr. */
bool rush_write_latencies(const char *folder, const char *strategy, const struct rush *rush);

/* The pictures of its report; see struct result_kind. */
json_t *rush_charts(const json_t *document);
/* How the result is printed. */
extern const struct result_kind rush_result;

#endif
