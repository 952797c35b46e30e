/* The plot of a result as an SVG document, for a page of the documentation or a slide. */
#include "loadtest/chart/gnuplot.h"
#include "loadtest/cli/complain.h"
#include "loadtest/report/format.h"

#include <stdlib.h>

static void write_script(const void *context, FILE *script)
{
    const struct result_table *table = context;
    table->kind->plot(table, script);
}

bool format_svg(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    if (!table->kind->plot)
        complain("this kind of result has no plot: choose another format");
    char *svg = table->kind->plot ? gnuplot_run(write_script, table) : NULL;
    if (svg)
        fputs(svg, out);
    free(svg);
    return svg != NULL;
}
