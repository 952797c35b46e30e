/* The charts of a rush: arrivals and answers over time, and the latency of the orders. */
#include "loadtest/openloop/rush_row.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define ARRIVALS "Arrivals and answers"
#define BACKLOG "Backlog"
#define PERCENTILES "Latency percentiles"
#define ROWS_MAX 12 /* rows that are drawn; the JSON has all */

/* Adds the points of an array with a value for each slot. */
static void add_slots(struct charts *charts, json_t *series, const json_t *over_time, const char *key)
{
    size_t i;
    json_t *value;
    double slot_s = result_figure(over_time, "slot_ms") / 1e3;
    chart_add_point(charts, series, 0, 0);
    json_array_foreach(json_object_get(over_time, key), i, value) {
        chart_add_point(charts, series, (double)(i + 1) * slot_s, json_number_value(value));
    }
}

static void add_arrivals(struct charts *charts, const json_t *row)
{
    const json_t *over_time = json_object_get(row, "over_time");
    int64_t arrivals = result_number(row, "arrivals"), answered = result_number(row, "answered");
    char about[240], came[NUMBER_MAX], served[NUMBER_MAX];
    snprintf(about, sizeof about, "%s buyers arrived, %s got an answer. %s",
             number_text((double)arrivals, 0, came), number_text((double)answered, 0, served),
             answered < arrivals
                 ? "At the end, the gap between the lines is the number of buyers without an answer."
                 : "The gap between the lines is the backlog.");
    json_t *chart = chart_add(charts, &(struct chart_look){.kind = CHART_LINES,
                                                           .title = result_text(row, "strategy"),
                                                           .about = about,
                                                           .x = "seconds",
                                                           .y = "buyers",
                                                           .group = ARRIVALS});
    add_slots(charts, chart_add_series(charts, chart, "arrived", 0), over_time, "arrived");
    add_slots(charts, chart_add_series(charts, chart, "answered", 2), over_time, "answered");
}

static void add_backlog(struct charts *charts, const json_t *row)
{
    json_t *chart = chart_add(charts,
                              &(struct chart_look){.kind = CHART_STEPS,
                                                   .title = result_text(row, "strategy"),
                                                   .about = "Buyers who have arrived and have no answer yet.",
                                                   .x = "seconds",
                                                   .y = "buyers",
                                                   .group = BACKLOG});
    add_slots(charts, chart_add_series(charts, chart, "waiting", CHART_DAMAGE),
              json_object_get(row, "over_time"), "waiting");
}

/* The axis is stretched towards the slowest orders, as HdrHistogram's plots are: each tic is ten times rarer. */
static double place_of(double share)
{
    return share < 1 ? -log10(1 - share) : NAN;
}

static void add_curve(struct charts *charts, const json_t *row)
{
    static const struct {
        double share;
        const char *label;
    } TICS[] = {{0.25, "25 %"}, {0.9, "90 %"}, {0.99, "99 %"}, {0.999, "99.9 %"}, {0.9999, "99.99 %"}};
    const json_t *curve = json_object_get(row, "curve");
    size_t i;
    json_t *point;
    bool closed = isfinite(result_figure(json_array_get(curve, 0), "closed_ms"));
    json_t *chart = chart_add(
        charts,
        &(struct chart_look){
            .kind = CHART_LINES,
            .title = result_text(row, "strategy"),
            .about = closed
                         ? "Open loop: from the arrival of each buyer. Closed loop: from the sending of each "
                           "request, at full speed."
                         : "From the arrival of each buyer.",
            .x = "share of the orders",
            .y = "milliseconds",
            .log_y = true,
            .decimals = 2,
            .group = PERCENTILES});
    json_t *open_loop = chart_add_series(charts, chart, "open loop, created orders", 0);
    json_t *closed_loop = closed ? chart_add_series(charts, chart, "closed loop, all answers", 2) : NULL;
    json_array_foreach(curve, i, point) {
        double place = place_of(result_figure(point, "share"));
        chart_add_point(charts, open_loop, place, result_figure(point, "open_ms"));
        if (isfinite(result_figure(point, "closed_ms")))
            chart_add_point(charts, closed_loop, place, result_figure(point, "closed_ms"));
    }
    for (i = 0; i < sizeof TICS / sizeof TICS[0]; i++)
        chart_add_tic(charts, chart, place_of(TICS[i].share), TICS[i].label);
}

static void add_latencies(struct charts *charts, const json_t *rows)
{
    static const char *const KEYS[] = {"p50", "p90", "p99", "max"}, *const MARKS[] = {"p50", "p90", "p99",
                                                                                      "slowest", NULL};
    size_t i, j;
    json_t *row;
    json_t *chart = chart_add(charts, &(struct chart_look){.kind = CHART_RANGES,
                                                           .log_x = true,
                                                           .title = "Latency of created orders",
                                                           .about = "From the arrival of each buyer.",
                                                           .x = "milliseconds",
                                                           .decimals = 1});
    chart_name_marks(charts, chart, MARKS);
    json_array_foreach(rows, i, row) {
        double values[4];
        for (j = 0; j < 4; j++)
            values[j] = result_figure(json_object_get(row, "latency_ms"), KEYS[j]);
        if (isfinite(values[0]))
            chart_add_row(charts, chart, result_text(row, "strategy"), values, 4);
    }
}

/* Calls ADD, whose charts are of GROUP, for the first rows that have KEY. */
static void add_each(struct charts *charts, const json_t *rows, const char *key, const char *group,
                     void (*add)(struct charts *charts, const json_t *row))
{
    size_t i, count = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (json_object_get(row, key) && count++ < ROWS_MAX)
            add(charts, row);
    }
    chart_count_group(charts, group, count);
}

json_t *rush_charts(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows");
    struct charts charts = {0};
    add_latencies(&charts, rows);
    add_each(&charts, rows, "curve", PERCENTILES, add_curve);
    add_each(&charts, rows, "over_time", ARRIVALS, add_arrivals);
    add_each(&charts, rows, "over_time", BACKLOG, add_backlog);
    return charts_take(&charts);
}
