/* What is kept of a fault: a row for each strategy. */
#ifndef OVERSELL_LOADTEST_FAULTS_ROW_H
#define OVERSELL_LOADTEST_FAULTS_ROW_H

#include "loadtest/faults/fault.h"
#include "loadtest/report/table.h"

#include <jansson.h>

/* NULL when out of memory. */
json_t *fault_row_new(const struct fault_run *run, const struct fault_subject *subject);

/* How the result is printed. */
extern const struct result_kind faults_result;

#endif
