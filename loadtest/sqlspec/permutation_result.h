/* The result of a file with permutation lines: a row for each. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_PERMUTATION_RESULT_H
#define OVERSELL_LOADTEST_SQLSPEC_PERMUTATION_RESULT_H

#include "loadtest/report/table.h"

/* The row of a permutation with these EVENTS (stolen), and the SQL of an invariant that was not true (NULL: none). NULL when out of
 * memory. */
json_t *permutation_row_new(json_t *events, const char *broken);

extern const struct result_kind permutation_result;

#endif
