/* The charts of an exploration: the number of bad schedules of each strategy, and the counterexamples as lanes. */
#include "loadtest/explore/run/explore_result.h"

#include "loadtest/chart/chart.h"
#include "loadtest/chart/number_text.h"
#include "loadtest/explore/explain/narration.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNTEREXAMPLES "Counterexamples"
#define LANES_MAX 12 /* counterexamples that are drawn; the JSON has all */

/* Every kind of damage is a column. */
static const struct damage {
    const char *key, *heading;
} DAMAGE[] = {
    {"oversold", "oversold"},  {"drift", "stock incorrect"},  {"undersold", "undersold"},
    {"deadlocks", "deadlock"}, {"stuck_locks", "lock stuck"},
};

#define DAMAGE_COUNT (sizeof DAMAGE / sizeof DAMAGE[0])

#define UNKNOWN "?" /* no bad schedule was seen, but not all were run */

static void add_share(struct charts *charts, json_t *cells, int64_t bad, const json_t *row)
{
    char text[80];
    double share = (double)bad / (double)result_number(row, "schedules");
    snprintf(text, sizeof text, share > 0 && share < 0.01 ? "<1\u00a0%%" : "%.0f\u00a0%%", share * 100);
    if (bad == 0)
        chart_add_cell(charts, cells, json_is_false(json_object_get(row, "complete")) ? UNKNOWN : "0", 0);
    else
        chart_add_cell(charts, cells, text, share < 0.25 ? 1 : share < 0.5 ? 2 : share < 0.75 ? 3 : 4);
}

/* The kinds of damage that any schedule did. The first one always has its column. */
static size_t kinds_seen(const json_t *rows, const struct damage **ret_kinds)
{
    size_t count = 0, i;
    json_t *row;
    for (const struct damage *kind = DAMAGE; kind < DAMAGE + DAMAGE_COUNT; kind++) {
        bool seen = kind == DAMAGE;
        json_array_foreach(rows, i, row) {
            seen |= result_number(row, kind->key) > 0;
        }
        if (seen)
            ret_kinds[count++] = kind;
    }
    return count;
}

static void add_matrix(struct charts *charts, const json_t *rows, const char *faults)
{
    const struct damage *kinds[DAMAGE_COUNT];
    const char *columns[DAMAGE_COUNT + 2] = {NULL};
    char about[400];
    size_t i, j, count = kinds_seen(rows, kinds);
    bool incomplete = false;
    json_t *row;
    for (j = 0; j < count; j++)
        columns[j] = kinds[j]->heading;
    columns[count] = "schedules";
    json_array_foreach(rows, i, row) {
        incomplete |= json_is_false(json_object_get(row, "complete"));
    }
    snprintf(about, sizeof about, "Share of the schedules that caused each damage; faults: %.60s.%s%s",
             *faults ? faults : "none",
             incomplete ? " " UNKNOWN ": no schedule that was run, but the search was not complete." : "",
             count < DAMAGE_COUNT ? " A damage that no schedule caused has no column." : "");
    json_t *chart = chart_add(
        charts, &(struct chart_look){
                    .kind = CHART_MATRIX, .title = "Schedules that went wrong", .about = about, .x = ""});
    chart_name_marks(charts, chart, columns);
    json_array_foreach(rows, i, row) {
        int64_t schedules = result_number(row, "schedules");
        if (schedules == 0)
            continue;
        char text[NUMBER_MAX];
        json_t *cells = chart_add_cells(charts, chart, result_text(row, "strategy"));
        for (j = 0; j < count; j++)
            add_share(charts, cells, result_number(row, kinds[j]->key), row);
        chart_add_cell(charts, cells, number_text((double)schedules, 0, text), 0);
    }
}

/* What an order did in a step: the value that it read or wrote, the outcome at its end, or the name of the step. */
static const char *words_of(const json_t *step, const json_t *outcomes, size_t lane)
{
    const char *text = result_text(step, "text"), *name = result_text(step, "step");
    const char *outcome = json_string_value(json_array_get(outcomes, lane));
    if (strcmp(name, "end") == 0 && outcome)
        return outcome;
    return *text ? text : name;
}

static void add_lanes(struct charts *charts, const json_t *row, const json_t *counterexample)
{
    static const char *const LANES[] = {"A", "B", "C", "D"};
    const json_t *steps = json_object_get(counterexample, "steps"),
                 *ending = json_object_get(counterexample, "ending");
    const json_t *outcomes = json_object_get(ending, "outcomes");
    const char *lanes[CHART_MARKS_MAX + 1] = {NULL};
    char about[600], title[160];
    size_t i, count = json_array_size(outcomes);
    json_t *step;
    count = count < CHART_MARKS_MAX ? count : CHART_MARKS_MAX;
    for (i = 0; i < count; i++)
        lanes[i] = LANES[i];
    snprintf(about, sizeof about, "%s", result_text(counterexample, "explanation"));
    const char *faults = result_text(row, "faults");
    snprintf(title, sizeof title, "%.80s%s%.60s", result_text(row, "strategy"),
             strcmp(faults, "none") == 0 || !*faults ? "" : ", ", strcmp(faults, "none") == 0 ? "" : faults);
    json_t *chart = chart_add(
        charts, &(struct chart_look){
                    .kind = CHART_LANES, .title = title, .about = about, .x = "", .group = COUNTEREXAMPLES});
    chart_name_marks(charts, chart, lanes);
    json_array_foreach(steps, i, step) {
        const char *actor = result_text(step, "actor");
        size_t lane = *actor >= 'A' && *actor <= 'D' ? (size_t)(*actor - 'A') : 0;
        char stock[32] = "";
        if (json_is_integer(json_object_get(step, "stock")))
            snprintf(stock, sizeof stock, "%" PRId64, result_number(step, "stock"));
        chart_add_step(charts, chart, lane, words_of(step, outcomes, lane), stock,
                       narration_is_fault(result_text(step, "text")));
    }
}

void explore_add_counterexamples(struct charts *charts, const json_t *rows)
{
    size_t i, count = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        const json_t *counterexample = json_object_get(row, "witness");
        if (json_array_size(json_object_get(counterexample, "steps")) > 0 && count++ < LANES_MAX)
            add_lanes(charts, row, counterexample);
    }
    chart_count_group(charts, COUNTEREXAMPLES, count);
}

json_t *explore_charts(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows");
    struct charts charts = {0};
    add_matrix(&charts, rows, result_text(json_object_get(document, "settings"), "faults"));
    explore_add_counterexamples(&charts, rows);
    return charts_take(&charts);
}
