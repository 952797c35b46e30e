/* Several explorations with different faults as one result: what each fault does to each strategy. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_FAULT_MATRIX_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_FAULT_MATRIX_H

#include "loadtest/report/table.h"

#include <jansson.h>

/* Are all COUNT results explorations of the same orders, with at least two sets of faults? */
bool fault_matrix_fits(json_t *const *results, size_t count);
/* Puts them together: a row for each strategy and each set of faults. Where two results have the same, the one that ran all schedules counts, or else the later one. The
 * caller's; NULL, with the reason on stderr. */
json_t *fault_matrix_new(json_t *const *results, const char *const *names, size_t count);

/* How such a result is printed. */
extern const struct result_kind fault_matrix_result;

#endif
