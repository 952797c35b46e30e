/* Compares results of the same kind: from before and after a change, or from two machines. */
#ifndef OVERSELL_LOADTEST_HISTORY_HISTORY_H
#define OVERSELL_LOADTEST_HISTORY_HISTORY_H

#include "loadtest/report/table.h"

#include <jansson.h>
#include <stdbool.h>

enum { HISTORY_MAX = 8 }; /* results at a time */

/* Compares COUNT results, 2 to HISTORY_MAX, in their order in time; NAMES are those of their files. Returns a document of the kind
 * below, the caller's. NULL, having said on stderr why they cannot be compared. */
json_t *history_new(json_t *const *results, const char *const *names, size_t count);

/* Does the assessment of a row of such a document begin with this word? "worse in result 2" is one of "worse". */
bool history_says(const json_t *row, const char *assessment);
/* Is it better, worse or changed? */
bool history_differs(const json_t *row);

/* How such a document is printed. */
extern const struct result_kind history_result;

#endif
