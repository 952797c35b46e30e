/* The plot of a comparison: units oversold beside orders a second, drawn by gnuplot. */
#ifndef OVERSELL_LOADTEST_REPORT_PLOT_H
#define OVERSELL_LOADTEST_REPORT_PLOT_H

#include "loadtest/report/table.h"

/* The plot as an SVG document, to be freed; NULL, having said why on stderr. */
char *plot_svg(const struct result_table *table);
/* gnuplot can be run. */
bool plot_is_possible(void);

#endif
