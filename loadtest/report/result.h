/* A stored result: one JSON document with its settings, its machine and its rows. */
#ifndef OVERSELL_LOADTEST_REPORT_RESULT_H
#define OVERSELL_LOADTEST_REPORT_RESULT_H

#include "loadtest/stats/verdict.h"

#include <jansson.h>
#include <stdint.h>

/* A new document: version, kind ("compare", "bench", …), the time, this machine, and SETTINGS (stolen). After an interrupt it says so, and
 * each format limits the closing sentence to what had run.
 * NULL when out of memory. */
json_t *result_new(const char *kind, json_t *settings);
/* Reads a document from a file, "-" for stdin. NULL, having said why on stderr. */
json_t *result_load(const char *path);
/* The kind of a document: what it says, or what its members tell; "" if it is none that we know. */
const char *result_kind_name(const json_t *document);

/* A member of a row: a number, 0 where there is none, or a text, "" where there is none; borrowed. */
int64_t result_number(const json_t *row, const char *key);
const char *result_text(const json_t *row, const char *key);
/* A number of any kind; NaN where there is none. */
double result_figure(const json_t *row, const char *key);
/* The row of ROWS, an array or NULL, that is about this strategy; NULL if there is none. */
const json_t *result_find(const json_t *rows, const char *strategy);
/* The verdict of a row; VERDICT_BROKEN if it has none that we know. */
enum verdict result_verdict(const json_t *row);
/* Counts the verdicts of ROWS; returns how many of them are failures. */
size_t result_verdicts(const json_t *rows, size_t ret_counts[VERDICT_COUNT]);

/* The exit status (commands.h) that the verdicts of ROWS ask for. A strategy that is not available is only missed where LIST
 * calls it by name, or where nothing else ran; one that was begun and broken off, for a reason, is missed in any case. */
int result_status(const json_t *rows, const char *list);

#endif
