/* A strategy's row of the result: the figures of a measurement as JSON, and several of them as one. */
#ifndef OVERSELL_LOADTEST_LOAD_ROW_H
#define OVERSELL_LOADTEST_LOAD_ROW_H

#include "loadtest/load/measure.h"

#include <jansson.h>

/* The row of one measurement; NULL when out of memory. */
json_t *row_new(const struct testbed *testbed, const struct plan *plan, const struct subject *subject,
                const struct measurement *measurement);

/* The two orders of the audit that cannot both be right, as a sentence; JSON null if there are none. NULL when out of memory. */
json_t *witness_text(const struct books *books);

/* One row for RUNS, a non-empty array of rows of one strategy. Its verdict is the worst of theirs; what
 * was sold, and the witness, are those of the run with that verdict whose oversold is the median; rates
 * and times are the medians of all runs. NULL when out of memory. */
json_t *row_of_runs(const json_t *runs);

#endif
