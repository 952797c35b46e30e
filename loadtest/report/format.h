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
format_fn format_svg;                               /* plot.c: the plot alone */

/* The plot of a kind that has one, as an SVG document, to be freed; NULL, having said why on stderr. */
char *plot_svg(const struct result_table *table);
/* Writes a name of a stored result into gnuplot's script. Characters that gnuplot could take for a command become "?": a result is
 * somebody's file, and gnuplot can run programs. */
void plot_print_name(FILE *script, const char *name);
/* The smallest of 1, 2 and 5 and their multiples by powers of ten that divides a scale from 0 to MOST, above 0, into at most TICS
 * parts. */
double plot_step(double most, int tics);
/* gnuplot can be run. */
bool plot_is_possible(void);

/* Characters that HTML and SVG need escaped are; everything else, UTF-8 included, goes out as it is. */
void print_escaped(FILE *out, const char *text);

#endif
