/* The plot of a comparison: units oversold, and orders per second. */
#include "loadtest/compare/compare_result.h"

#include "loadtest/chart/gnuplot.h"

#include <stdio.h>

#define ROW_PIXELS 26
#define FRAME_PIXELS 110 /* title, axis and its labels */
#define ROWS_MIN 5       /* gnuplot needs some room */
#define WIDTH_PIXELS 960
#define TICS_MAX 6 /* as many as have room without being turned */

static double figure(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

/* Rates are worth comparing among the rows that did it right. */
static bool rate_counts(const json_t *row)
{
    const json_t *kept = json_object_get(row, "kept");
    return json_is_number(json_object_get(row, "orders_per_s")) &&
           json_is_true(json_object_get(kept, "stock")) && json_is_true(json_object_get(kept, "books"));
}

/* One line a strategy: its place from the top, name, units oversold, orders a second; "?" stands for none. */
static void print_data(FILE *script, const struct result_table *table)
{
    size_t i;
    json_t *row;
    fputs("$rows << END\n", script);
    json_array_foreach(table->rows, i, row) {
        const char *name = json_string_value(json_object_get(row, "strategy"));
        fprintf(script, "%zu ", i + 1);
        gnuplot_print_name(script, name ? name : "?");
        if (json_is_number(json_object_get(row, "oversold")))
            fprintf(script, " %.0f ", figure(row, "oversold"));
        else
            fputs(" ? ", script);
        if (rate_counts(row))
            fprintf(script, "%.1f\n", figure(row, "orders_per_s"));
        else
            fputs("?\n", script);
    }
    fputs("END\n", script);
}

/* Bars lie on their side, so that names can be read; the value stands at the end of its bar. */
static void print_bars(FILE *script, int value, const char *title, const char *colour, const char *format)
{
    fprintf(script,
            "set title '%s' noenhanced\n"
            "plot $rows using ($%d/2.0):1:($%d/2.0):(0.36):ytic(2) with boxxyerror fillstyle solid noborder "
            "linecolor rgb '%s', \\\n"
            "     $rows using %d:1:(sprintf('%s', $%d)) with labels left offset 0.5,0 noenhanced\n",
            title, value, value, colour, value, format, value);
}

void compare_plot(const struct result_table *table, FILE *script)
{
    size_t rows = json_array_size(table->rows);
    double most = 1, fastest = 0;
    size_t i;
    json_t *row;
    json_array_foreach(table->rows, i, row) {
        most = figure(row, "oversold") > most ? figure(row, "oversold") : most;
        fastest = rate_counts(row) && figure(row, "orders_per_s") > fastest ? figure(row, "orders_per_s")
                                                                            : fastest;
    }
    fprintf(script,
            "set terminal svg size %d,%zu font 'sans-serif,12' background rgb 'white' "
            "name 'oversell' noenhanced\n"
            "set datafile missing '?'\n"
            "set key off\nset rmargin 4\nset border 3 linecolor rgb '#888888'\nset tics nomirror out\n"
            "set grid xtics linecolor rgb '#dddddd'\nset format x '%%.0f'\n"
            "set yrange [%zu.6:0.4]\n",
            WIDTH_PIXELS, (rows > ROWS_MIN ? rows : ROWS_MIN) * ROW_PIXELS + FRAME_PIXELS, rows);
    print_data(script, table);
    bool rated = fastest > 0; /* a run without a throughput phase has one panel */
    fprintf(script, "set multiplot layout 1,%d\n", rated ? 2 : 1);
    fprintf(script, "set xrange [0:%.0f]\nset xtics %.0f\n", most * 1.15 + 1,
            gnuplot_step(most * 1.15 + 1, TICS_MAX));
    print_bars(script, 3, "Units sold beyond the stock", "#c2410c", "%.0f");
    if (rated) {
        fprintf(script, "set xrange [0:%.0f]\nset xtics %.0f\n", fastest * 1.2,
                gnuplot_step(fastest * 1.2, TICS_MAX));
        print_bars(script, 4, "Orders per second, without oversells", "#1d4ed8", "%.0f");
    }
    fputs("unset multiplot\n", script);
}
