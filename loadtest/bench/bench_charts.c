/* The pictures of a bench: each ratio beside its goal, and the figures that have no goal. */
#include "loadtest/bench/cases.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <math.h>
#include <string.h>

static const char *const MARKS[] = {"median", "least", "most", NULL};

static double figure(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Median, least and most as shares of the goal: more is better, whatever the ratio is. */
static void add_goals(struct charts *charts, const json_t *ratios)
{
    size_t i;
    json_t *row, *chart = NULL;
    json_array_foreach(ratios, i, row) {
        double goal = figure(row, "goal"), value = figure(row, "value"), least = figure(row, "min"),
               most = figure(row, "max");
        bool lower = strcmp(result_text(row, "better"), "lower") == 0;
        if (!(goal > 0) || !(value > 0))
            continue;
        double shares[] = {lower ? goal / value : value / goal, lower ? goal / most : least / goal,
                           lower ? goal / least : most / goal};
        if (!chart) {
            chart = chart_add(
                charts,
                &(struct chart_look){
                    .kind = CHART_RANGES,
                    .title = "Goals",
                    .about = "Each ratio as a share of its goal: the goal is reached at 1 and right of it.",
                    .x = "share of the goal",
                    .decimals = 2,
                    .name_of_rows = "ratio"});
            chart_name_marks(charts, chart, MARKS);
        }
        chart_add_row(charts, chart, result_text(row, "name"), shares, 3);
    }
}

/* The ratios whose names begin with PREFIX and that have no goal. */
static void add_figures(struct charts *charts, const json_t *ratios, const char *prefix,
                        const struct chart_look *look)
{
    size_t i, length = strlen(prefix);
    json_t *row, *chart = NULL;
    json_array_foreach(ratios, i, row) {
        const char *name = result_text(row, "name");
        double values[] = {figure(row, "value"), figure(row, "min"), figure(row, "max")};
        if (strncmp(name, prefix, length) != 0 || figure(row, "goal") > 0 || !(values[0] > 0))
            continue;
        if (!chart) {
            chart = chart_add(charts, look);
            chart_name_marks(charts, chart, MARKS);
        }
        chart_add_row(charts, chart, name + length, values, 3);
    }
}

json_t *bench_charts(const json_t *document)
{
    const json_t *ratios = json_object_get(document, "ratios");
    struct charts charts = {0};
    add_goals(&charts, ratios);
    add_figures(
        &charts, ratios, "hand-over/",
        &(struct chart_look){
            .kind = CHART_RANGES,
            .log_x = true,
            .title = "Hand-over of a lock",
            .about =
                "From the start of a release until the next holder has the lock, as a multiple of one acquisition and release without competitors.",
            .x = "cycles",
            .decimals = 2,
            .name_of_rows = "lock"});
    add_figures(&charts, ratios, "calls/",
                &(struct chart_look){.kind = CHART_RANGES,
                                     .title = "System calls per order",
                                     .about = "Fewer are better.",
                                     .x = "system calls",
                                     .decimals = 1});
    return charts_take(&charts);
}
