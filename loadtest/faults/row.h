/* The result of `loadtest faults`: one JSON row for each strategy under each fault, and how the rows are printed. */
#ifndef OVERSELL_LOADTEST_FAULTS_ROW_H
#define OVERSELL_LOADTEST_FAULTS_ROW_H

#include "loadtest/faults/fault.h"
#include "loadtest/report/table.h"

#include <jansson.h>

/* The row of SUBJECT under the fault of RUN, a new reference; NULL when out of memory. */
json_t *fault_row_new(const struct fault_run *run, const struct fault_subject *subject);

extern const struct result_kind faults_result;

/* The pictures of its report; see struct result_kind. */
json_t *faults_charts(const json_t *document);

#endif
