/* The charts of a soak: memory, rate and p99 as the number of orders grows. */
#include "loadtest/soak/soak.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <math.h>

#define ROWS_MAX 12 /* rows that are drawn over their orders; the JSON has all */

static void add_memory(struct charts *charts, const json_t *rows)
{
    static const char *const MARKS[] = {"first", "last", "allowed", NULL};
    size_t i;
    json_t *row, *chart = NULL;
    json_array_foreach(rows, i, row) {
        double first = result_figure(row, "memory_start_kib");
        double values[] = {first / 1024, result_figure(row, "memory_end_kib") / 1024,
                           (first + result_figure(row, "growth_allowed_kib")) / 1024};
        if (!isfinite(first))
            continue;
        if (!chart) {
            chart = chart_add(
                charts, &(struct chart_look){
                            .kind = CHART_RANGES,
                            .title = "Memory of the service",
                            .about = "After the first stock and after the last one, and how far it may grow.",
                            .x = "MiB",
                            .decimals = 1});
            chart_name_marks(charts, chart, MARKS);
        }
        chart_add_row(charts, chart, result_text(row, "strategy"), values, 3);
    }
}

/* One figure of each row over its orders. */
static void add_over_orders(struct charts *charts, const json_t *rows, const char *key, double unit,
                            int colour, const struct chart_look *look)
{
    size_t i, j, drawn = 0;
    json_t *row, *point;
    json_array_foreach(rows, i, row) {
        const json_t *points = json_object_get(row, "over_orders");
        if (json_array_size(points) < 2 || drawn++ >= ROWS_MAX)
            continue;
        struct chart_look own = *look;
        own.title = result_text(row, "strategy");
        json_t *series = chart_add_series(charts, chart_add(charts, &own), look->title, colour);
        json_array_foreach(points, j, point) {
            chart_add_point(charts, series, result_figure(point, "orders") / 1000,
                            result_figure(point, key) / unit);
        }
    }
    chart_count_group(charts, look->group, drawn);
}

json_t *soak_charts(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows");
    struct charts charts = {0};
    add_memory(&charts, rows);
    add_over_orders(&charts, rows, "memory_kib", 1024, 0,
                    &(struct chart_look){.kind = CHART_LINES,
                                         .title = "MiB",
                                         .x = "thousand orders",
                                         .y = "MiB",
                                         .decimals = 1,
                                         .group = "Memory after each stock"});
    add_over_orders(&charts, rows, "orders_per_s", 1, 0,
                    &(struct chart_look){.kind = CHART_LINES,
                                         .title = "orders/s",
                                         .x = "thousand orders",
                                         .y = "orders/s",
                                         .group = "Orders per second"});
    add_over_orders(&charts, rows, "p99_ms", 1, 0,
                    &(struct chart_look){.kind = CHART_LINES,
                                         .title = "milliseconds",
                                         .x = "thousand orders",
                                         .y = "milliseconds",
                                         .decimals = 1,
                                         .group = "p99 of all answers"});
    return charts_take(&charts);
}
