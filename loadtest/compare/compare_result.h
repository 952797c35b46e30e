/* How the results of compare and diff are printed. */
#ifndef OVERSELL_LOADTEST_COMPARE_COMPARE_RESULT_H
#define OVERSELL_LOADTEST_COMPARE_COMPARE_RESULT_H

#include "loadtest/report/table.h"

extern const struct result_kind compare_result, diff_result;

/* Writes what a comparison has found; nothing if it has no rows that say anything. */
void compare_headline(const json_t *document, FILE *out);
/* The pictures of a comparison's report; see struct result_kind. */
json_t *compare_charts(const json_t *document);

#endif
