/* The plot alone, as an SVG file. */
#include "loadtest/cli/complain.h"
#include "loadtest/report/format.h"

#include "loadtest/report/plot.h"

#include <stdlib.h>

bool format_svg(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    if (!table->kind->has_plot) {
        complain("there is no plot of this kind of result");
        return false;
    }
    char *svg = plot_svg(table);
    if (!svg)
        return false;
    fputs(svg, out);
    free(svg);
    return true;
}
