/* The pictures of a growth run: orders per second and p99 as connections, products and stored orders become more. */
#include "loadtest/measured/measured.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <stdio.h>
#include <string.h>

/* What a picture shows of each row. */
struct line {
    const char *strategy, *key; /* members of a row */
    const char *name;
    int colour;
};

static const struct line RATES[] = {
    {"atomic-statement", "orders_per_s", "atomic-statement", 0},
    {"select-for-update", "orders_per_s", "select-for-update", 2},
    {"atomic-statement", "pgbench_per_s", "pgbench, atomic-statement", 3},
    {"select-for-update", "pgbench_per_s", "pgbench, select-for-update", 5},
};
static const struct line TIMES[] = {
    {"atomic-statement", "p99_ms", "atomic-statement", 0},
    {"select-for-update", "p99_ms", "select-for-update", 2},
};

static void add_picture(struct charts *charts, const json_t *rows, const char *axis,
                        const struct chart_look *look, const struct line *lines, size_t count)
{
    size_t i, j;
    json_t *row, *chart = chart_add(charts, look);
    for (j = 0; j < count; j++) {
        json_t *series = chart_add_series(charts, chart, lines[j].name, lines[j].colour);
        json_array_foreach(rows, i, row) {
            if (strcmp(result_text(row, "axis"), axis) == 0)
                chart_add_point(charts, series, (double)result_number(row, "at"),
                                result_figure(json_object_get(row, lines[j].strategy), lines[j].key));
        }
    }
}

static bool has_axis(const json_t *rows, const char *axis)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (strcmp(result_text(row, "axis"), axis) == 0)
            return true;
    }
    return false;
}

json_t *growth_charts(const json_t *document)
{
    static const struct {
        const char *words, *x;
    } AXES[GROWTH_AXES] = {
        [GROWTH_CONNECTIONS] = {"more connections", "connections to one product"},
        [GROWTH_PRODUCTS] = {"more products", "products"},
        [GROWTH_ORDERS] = {"more stored orders", "orders in the tables"},
    };
    const json_t *rows = json_object_get(document, "rows");
    struct charts charts = {0};
    char title[80];
    for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++) {
        snprintf(title, sizeof title, "Orders per second with %s", AXES[axis].words);
        if (has_axis(rows, growth_axis_names[axis]))
            add_picture(&charts, rows, growth_axis_names[axis],
                        &(struct chart_look){.kind = CHART_LINES,
                                             .title = title,
                                             .about = "pgbench runs the SQL alone, with as many clients.",
                                             .x = AXES[axis].x,
                                             .y = "orders/s",
                                             .log_x = true},
                        RATES, sizeof RATES / sizeof RATES[0]);
    }
    for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++) {
        snprintf(title, sizeof title, "p99 with %s", AXES[axis].words);
        if (has_axis(rows, growth_axis_names[axis]))
            add_picture(&charts, rows, growth_axis_names[axis],
                        &(struct chart_look){.kind = CHART_LINES,
                                             .title = title,
                                             .about = "99 of 100 created orders took at most this long.",
                                             .x = AXES[axis].x,
                                             .y = "milliseconds",
                                             .log_x = true,
                                             .log_y = true,
                                             .decimals = 1},
                        TIMES, sizeof TIMES / sizeof TIMES[0]);
    }
    return charts_take(&charts);
}
