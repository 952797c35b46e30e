/* The pictures of a check: what each run sold of its stock, how fast it was, and how long the answers took. */
#include "loadtest/own/check_row.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void name_run(const json_t *row, char *ret_name, size_t size)
{
    snprintf(ret_name, size, "run %" PRId64, result_number(row, "run"));
}

static void add_sales(struct charts *charts, const json_t *rows, double stock)
{
    size_t i;
    json_t *row;
    json_t *chart = chart_add(
        charts, &(struct chart_look){.kind = CHART_RANGES,
                                     .title = "Units sold of the stock",
                                     .about = "A run that sold more than the stock oversold the difference.",
                                     .x = "units",
                                     .name_of_rows = "run"});
    chart_name_marks(charts, chart, (const char *const[]){"stock", "sold", NULL});
    json_array_foreach(rows, i, row) {
        char name[32];
        name_run(row, name, sizeof name);
        chart_add_row(charts, chart, name, (double[]){stock, result_figure(row, "sold")}, 2);
    }
}

static void add_latencies(struct charts *charts, const json_t *rows)
{
    size_t i;
    json_t *row;
    json_t *chart = chart_add(charts, &(struct chart_look){.kind = CHART_RANGES,
                                                           .title = "Latency of the answers",
                                                           .about = "99 of 100 answers took at most p99.",
                                                           .x = "milliseconds",
                                                           .log_x = true,
                                                           .decimals = 2,
                                                           .name_of_rows = "run"});
    chart_name_marks(charts, chart, (const char *const[]){"p50", "p99", NULL});
    json_array_foreach(rows, i, row) {
        const json_t *latency = json_object_get(row, "latency_ms");
        char name[32];
        name_run(row, name, sizeof name);
        if (isfinite(result_figure(latency, "p50")))
            chart_add_row(charts, chart, name,
                          (double[]){result_figure(latency, "p50"), result_figure(latency, "p99")}, 2);
    }
}

static void add_rates(struct charts *charts, const json_t *rows)
{
    size_t i;
    json_t *row;
    json_t *chart = chart_add(charts, &(struct chart_look){.kind = CHART_BARS,
                                                           .title = "Orders per second",
                                                           .about = "Acknowledged orders.",
                                                           .x = "orders/s",
                                                           .name_of_rows = "run"});
    json_array_foreach(rows, i, row) {
        char name[32];
        name_run(row, name, sizeof name);
        chart_add_row(charts, chart, name, (double[]){result_figure(row, "orders_per_s")}, 1);
    }
}

json_t *check_charts(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows");
    struct charts charts = {0};
    if (json_array_size(rows) > 0) {
        add_sales(&charts, rows, result_figure(json_object_get(document, "settings"), "stock"));
        add_latencies(&charts, rows);
        add_rates(&charts, rows);
    }
    return charts_take(&charts);
}
