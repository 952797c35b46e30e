/* The formats that a table can be printed in. */
#ifndef OVERSELL_LOADTEST_REPORT_FORMAT_H
#define OVERSELL_LOADTEST_REPORT_FORMAT_H

#include "loadtest/report/table.h"

#include <stdbool.h>
#include <stdio.h>

/* What the output is shown on. */
struct page {
    bool colour;
    size_t width; /* columns; 0: as wide as need be */
};

/* Prints the table; false, having said why on stderr. Errors of the stream are the caller's to look for. */
typedef bool format_fn(const struct result_table *table, const struct page *page, FILE *out);

format_fn format_table;                             /* format_table.c: for terminals */
format_fn format_json, format_csv, format_markdown; /* format_text.c */
format_fn format_junit;                             /* format_junit.c: verdicts for continuous integration */
format_fn format_html;                              /* format_html.c: one self-contained file */
format_fn format_svg;                               /* format_svg.c: the pictures alone */

/* Prints the pictures of a result, if its kind has any: of a report. */
void print_charts(const struct result_table *table, FILE *out);
/* Characters that HTML and SVG need escaped are; everything else, UTF-8 included, goes out as it is. */
void print_escaped(FILE *out, const char *text);

#endif
