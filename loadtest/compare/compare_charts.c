/* The charts of a comparison: the oversold units, how fast and how slow the strategies are, and the sell-outs over time. */
#include "loadtest/compare/compare_result.h"

#include "loadtest/chart/chart.h"
#include "loadtest/chart/number_text.h"
#include "loadtest/report/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SALES "The sell-out over time"
#define SALES_MAX 12 /* sell-outs that are drawn; the JSON has all */

/* Rates are worth comparing among the rows that did it right. */
static bool rate_counts(const json_t *row)
{
    const json_t *kept = json_object_get(row, "kept");
    return result_figure(row, "orders_per_s") > 0 && json_is_true(json_object_get(kept, "stock")) &&
           json_is_true(json_object_get(kept, "books"));
}

static void add_oversold(struct charts *charts, const json_t *rows)
{
    size_t i, damaged = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        damaged += result_figure(row, "oversold") > 0;
    }
    if (damaged == 0)
        return;
    char about[160];
    snprintf(about, sizeof about, "%zu of %zu strategies oversold; the others are not drawn.", damaged,
             json_array_size(rows));
    json_t *chart = chart_add(charts, &(struct chart_look){.kind = CHART_BARS,
                                                           .title = "Units sold beyond the stock",
                                                           .about = about,
                                                           .x = "units oversold",
                                                           .bad = true});
    json_array_foreach(rows, i, row) {
        double oversold = result_figure(row, "oversold");
        if (oversold > 0)
            chart_add_row(charts, chart, result_text(row, "strategy"), &oversold, 1);
    }
}

static void add_rates(struct charts *charts, const json_t *rows)
{
    size_t i, counted = 0;
    json_t *row, *chart = NULL;
    json_array_foreach(rows, i, row) {
        double rate = result_figure(row, "orders_per_s");
        if (!rate_counts(row))
            continue;
        if (counted++ == 0)
            chart = chart_add(
                charts,
                &(struct chart_look){.kind = CHART_BARS,
                                     .title = "Orders per second",
                                     .about = "With enough stock; only strategies that did not oversell.",
                                     .x = "orders/s"});
        chart_add_row(charts, chart, result_text(row, "strategy"), &rate, 1);
    }
}

static void add_latencies(struct charts *charts, const json_t *rows)
{
    static const char *const KEYS[] = {"p50", "p90", "p99", "max"}, *const MARKS[] = {"p50", "p90", "p99",
                                                                                      "slowest", NULL};
    size_t i, j, counted = 0;
    json_t *row, *chart = NULL;
    json_array_foreach(rows, i, row) {
        const json_t *latency = json_object_get(row, "latency_ms");
        double values[4];
        for (j = 0; j < 4; j++)
            values[j] = result_figure(latency, KEYS[j]);
        if (!isfinite(values[0]))
            continue;
        if (counted++ == 0) {
            chart = chart_add(
                charts,
                &(struct chart_look){
                    .kind = CHART_RANGES,
                    .log_x = true,
                    .title = "Latency of created orders",
                    .about =
                        "By the clock of the service. p99 is the time that 99 of 100 orders took at most.",
                    .x = "milliseconds",
                    .decimals = 1});
            chart_name_marks(charts, chart, MARKS);
        }
        chart_add_row(charts, chart, result_text(row, "strategy"), values, 4);
    }
}

/* ---- the sell-outs ------------------------------------------------------------------------------------- */

/* What a row was sold over time. */
static void add_sale(struct charts *charts, const json_t *row)
{
    const json_t *sale = json_object_get(row, "sale");
    const json_t *sold = json_object_get(sale, "sold"), *left = json_object_get(sale, "left");
    double slot_ms = result_figure(sale, "slot_ms"), stock = result_figure(row, "stock");
    size_t i, count = json_array_size(sold);
    json_t *value;
    char about[160], sold_text[NUMBER_MAX], stock_text[NUMBER_MAX], beyond_text[NUMBER_MAX];
    int64_t oversold = result_number(row, "oversold");
    number_text((double)result_number(row, "sold"), 0, sold_text);
    number_text(stock, 0, stock_text);
    if (oversold > 0)
        snprintf(about, sizeof about, "Sold %s of %s: %s beyond the stock.", sold_text, stock_text,
                 number_text((double)oversold, 0, beyond_text));
    else
        snprintf(about, sizeof about, "Sold %s of %s.", sold_text, stock_text);
    json_t *chart = chart_add(charts, &(struct chart_look){.kind = CHART_STEPS,
                                                           .title = result_text(row, "strategy"),
                                                           .about = about,
                                                           .x = "milliseconds",
                                                           .y = "units",
                                                           .group = SALES});
    json_t *total = chart_add_series(charts, chart, "sold", 0);
    chart_add_point(charts, total, 0, 0);
    json_array_foreach(sold, i, value) {
        chart_add_point(charts, total, (double)(i + 1) * slot_ms, json_number_value(value));
    }
    json_t *seen = chart_add_series(charts, chart, "left, as the latest order saw it", 2);
    chart_add_point(charts, seen, 0, stock);
    json_array_foreach(left, i, value) {
        chart_add_point(charts, seen, (double)(i + 1) * slot_ms,
                        json_is_number(value) ? json_number_value(value) : NAN);
    }
    json_t *beyond = oversold > 0 ? chart_add_series(charts, chart, "oversold", CHART_DAMAGE) : NULL;
    chart_add_point(charts, beyond, 0, 0);
    json_array_foreach(sold, i, value) {
        chart_add_point(charts, beyond, (double)(i + 1) * slot_ms, fmax(0, json_number_value(value) - stock));
    }
    json_t *limit = chart_add_series(charts, chart, "stock at the start", 5);
    chart_add_point(charts, limit, 0, stock);
    chart_add_point(charts, limit, (double)count * slot_ms, stock);
}

/* Those that oversold come first, in the order of the table. */
static void add_sales(struct charts *charts, const json_t *rows)
{
    size_t i, count = 0;
    json_t *row;
    for (int damaged = 1; damaged >= 0; damaged--) {
        json_array_foreach(rows, i, row) {
            bool has = json_array_size(json_object_get(json_object_get(row, "sale"), "sold")) > 0;
            if (has && (result_number(row, "oversold") > 0) == damaged && count++ < SALES_MAX)
                add_sale(charts, row);
        }
    }
    chart_count_group(charts, SALES, count);
}

json_t *compare_charts(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows");
    struct charts charts = {0};
    add_oversold(&charts, rows);
    add_rates(&charts, rows);
    add_latencies(&charts, rows);
    add_sales(&charts, rows);
    return charts_take(&charts);
}
