/* How a result of `loadtest growth` is printed: its columns, its title, its notes and its plot. */
#include "loadtest/growth/growth.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const growth_axis_names[GROWTH_AXES] = {
    [GROWTH_CONNECTIONS] = "connections",
    [GROWTH_PRODUCTS] = "products",
    [GROWTH_ORDERS] = "orders",
};

/* clang-format off */
static const struct column COLUMNS[] = {
    {"axis", "what grows", COLUMN_TEXT, 0, SHOW_ALL, 0, "what grows: connections, products that are ordered, or orders in the tables"},
    {"at", "to", COLUMN_NUMBER, 0, SHOW_ALL, 0, "its value"},
    {"atomic-statement.orders_per_s", "statement\norders/s", COLUMN_NUMBER, 0, SHOW_ALL, 0, "orders per second, atomic-statement"},
    {"atomic-statement.p99_ms", "p99 ms", COLUMN_NUMBER, 1, SHOW_ALL, 1, "99 of 100 created orders took at most this long in the service, atomic-statement"},
    {"atomic-statement.pgbench_per_s", "pgbench\norders/s", COLUMN_NUMBER, 0, SHOW_ALL, 2, "the same SQL in pgbench with as many clients, up to 100"},
    {"select-for-update.orders_per_s", "for-update\norders/s", COLUMN_NUMBER, 0, SHOW_ALL, 0, "orders per second, select-for-update"},
    {"select-for-update.p99_ms", "p99 ms", COLUMN_NUMBER, 1, SHOW_ALL, 1, "99 of 100 created orders took at most this long in the service, select-for-update"},
    {"select-for-update.pgbench_per_s", "pgbench\norders/s", COLUMN_NUMBER, 0, SHOW_ALL, 2, "the same SQL in pgbench with as many clients, up to 100"},
    {"atomic-statement.median_ms", "statement\nmedian ms", COLUMN_NUMBER, 1, SHOW_CSV, 0, "half of the created orders took at most this long, atomic-statement"},
    {"select-for-update.median_ms", "for-update\nmedian ms", COLUMN_NUMBER, 1, SHOW_CSV, 0, "half of the created orders took at most this long, select-for-update"},
    {"insert_s", "insert s", COLUMN_NUMBER, 1, SHOW_CSV, 0, "seconds to insert the earlier orders that were missing"},
};
/* clang-format on */

static void print_title(const json_t *document, char *ret_title, size_t size)
{
    const json_t *settings = json_object_get(document, "settings");
    snprintf(
        ret_title, size,
        "The service with its default settings; %g s for each value; connections: one product; products: "
        "%" PRId64 " connections; orders: %" PRId64 " connections and %" PRId64 " products",
        (double)result_number(settings, "duration_ms") / 1e3, result_number(settings, "connections"),
        result_number(settings, "connections"), result_number(settings, "products"));
}

/* ---- notes ---------------------------------------------------------------------------------------------------- */

static const char *const STRATEGIES[] = {"atomic-statement", "select-for-update"};

#define STRATEGY_COUNT (sizeof STRATEGIES / sizeof STRATEGIES[0])

static void print_headline(const json_t *document, char *ret_headline, size_t size)
{
    const json_t *best = NULL;
    double most = 0;
    size_t i, best_strategy = 0;
    const json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        for (size_t j = 0; j < STRATEGY_COUNT; j++) {
            double rate = json_number_value(
                json_object_get(json_object_get(row, STRATEGIES[j]), "orders_per_s"));
            if (rate > most) {
                most = rate;
                best = row;
                best_strategy = j;
            }
        }
    }
    char rate[NUMBER_MAX];
    ret_headline[0] = 0;
    if (best)
        snprintf(ret_headline, size, "%s reaches %s orders/s, with %" PRId64 " %s.",
                 STRATEGIES[best_strategy], number_text(most, 0, rate), result_number(best, "at"),
                 result_text(best, "axis"));
}

static bool add_notes(const json_t *document, struct notes *notes)
{
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        for (size_t j = 0; j < STRATEGY_COUNT; j++) {
            int64_t refused = result_number(json_object_get(row, STRATEGIES[j]), "refused");
            if (refused > 0 &&
                !notes_add(notes, NOTE_WARNING,
                           "%s, %" PRId64 " %s: the service refused %" PRId64
                           " orders that could not be placed in time.",
                           STRATEGIES[j], result_number(row, "at"), result_text(row, "axis"), refused))
                return false;
        }
    }
    return notes_add_busy_machine(notes, document);
}

/* ---- the plot ------------------------------------------------------------------------------------------------- */

static void print_figure(FILE *script, const json_t *figures, const char *key)
{
    const json_t *figure = json_object_get(figures, key);
    if (json_is_number(figure))
        fprintf(script, " %.3f", json_number_value(figure));
    else
        fputs(" ?", script);
}

/* The values of an axis in a result; none if LAST is 0. */
struct range {
    int64_t first, last;
};

/* A line for each row of the axis: the value, then rate, p99 and pgbench's rate of each strategy. */
static struct range print_data(FILE *script, const json_t *rows, const char *axis)
{
    size_t i;
    struct range range = {0, 0};
    const json_t *row;
    fprintf(script, "$%s << END\n", axis);
    json_array_foreach(rows, i, row) {
        if (strcmp(result_text(row, "axis"), axis) != 0)
            continue;
        range.last = result_number(row, "at");
        range.first = range.first ? range.first : range.last;
        fprintf(script, "%" PRId64, range.last);
        for (size_t j = 0; j < STRATEGY_COUNT; j++) {
            const json_t *figures = json_object_get(row, STRATEGIES[j]);
            print_figure(script, figures, "orders_per_s");
            print_figure(script, figures, "p99_ms");
            print_figure(script, figures, "pgbench_per_s");
        }
        fputc('\n', script);
    }
    fputs("END\n", script);
    return range;
}

#define LINE " with linespoints pointtype 7 pointsize 0.5 linewidth 2 linecolor rgb "
#define DASHES " with linespoints pointtype 6 pointsize 0.5 dashtype 2 linecolor rgb "
#define BLUE "'#1d4ed8'"
#define RED "'#c2410c'"

static void print_panel(FILE *script, const char *axis, const struct range *range, const char *words,
                        bool times)
{
    fprintf(script, "set xrange [%.2f:%.2f]\n", (double)range->first * 0.8, (double)range->last * 1.25);
    fprintf(script, "set title '%s' noenhanced\nset key %s\n",
            times ? "p99 in milliseconds" : "Orders per second",
            strcmp(axis, growth_axis_names[0]) == 0 && !times ? "on top left Left reverse" : "off");
    fprintf(script, "set xlabel '%s'\n%s\n", words,
            times ? "set logscale y\nset offsets 0,0,0,0"
                  : "unset logscale y\nset yrange [0:*]\nset offsets 0,0,graph 0.45,0");
    if (times)
        fprintf(script,
                "set yrange [*:*]\n"
                "plot $%s using 1:3" LINE BLUE " title 'atomic-statement', "
                "$%s using 1:6" LINE RED " title 'select-for-update'\n",
                axis, axis);
    else
        fprintf(script,
                "plot $%s using 1:2" LINE BLUE " title 'atomic-statement', $%s using 1:4" DASHES BLUE
                " title 'same SQL in pgbench', $%s using 1:5" LINE RED
                " title 'select-for-update', $%s using 1:7" DASHES RED " title 'same SQL in pgbench'\n",
                axis, axis, axis, axis);
}

static void plot(const struct result_table *table, FILE *script)
{
    static const char *const WORDS[GROWTH_AXES] = {
        [GROWTH_CONNECTIONS] = "connections, one product",
        [GROWTH_PRODUCTS] = "products",
        [GROWTH_ORDERS] = "orders in the tables",
    };
    struct range ranges[GROWTH_AXES];
    fputs(
        "set terminal svg size 1080,620 font 'sans-serif,12' background rgb 'white' name 'growth' noenhanced\n"
        "set datafile missing '?'\nset border 3 linecolor rgb '#888888'\nset tics nomirror out\n"
        "set grid linecolor rgb '#dddddd'\nset logscale x\nset format x '%.0s%c'\n"
        "set key font ',10' samplen 2\n",
        script);
    for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++)
        ranges[axis] = print_data(script, table->rows, growth_axis_names[axis]);
    fprintf(script, "set multiplot layout 2,%d\n", GROWTH_AXES);
    for (int times = 0; times < 2; times++)
        for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++) {
            if (ranges[axis].last <= 0)
                fputs("set multiplot next\n", script);
            else
                print_panel(script, growth_axis_names[axis], &ranges[axis], WORDS[axis], times);
        }
    fputs("unset multiplot\n", script);
}

const struct result_kind growth_result = {
    .name = "growth",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .plot = plot,
};
