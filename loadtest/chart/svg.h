/* Draws charts with gnuplot, each as an SVG document that is 360 units wide: a phone shows it at this width, and a wider page scales it
 * up. */
#ifndef OVERSELL_LOADTEST_CHART_SVG_H
#define OVERSELL_LOADTEST_CHART_SVG_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* The drawings of CHARTS, an array as charts_take returns, in its order. *ret_text holds them, and is to be freed; each of *ret_svg,
 * an array to be freed, points into it, "" for a chart without values. Returns how many there are; 0 if gnuplot cannot be run, or
 * with a reason on stderr if it failed. */
size_t charts_draw(const json_t *charts, char **ret_text, const char ***ret_svg);
/* Writes gnuplot's script for one chart; for tests. */
void chart_print_script(const json_t *chart, FILE *script);
/* Cuts TEXT, which gnuplot printed for CHARTS, into their drawings, as charts_draw returns them; for tests. */
void charts_cut(const json_t *charts, char *text, const char **ret_svg);

#endif
