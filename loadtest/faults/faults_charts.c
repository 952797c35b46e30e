/* The charts of a fault run: the strategies that each fault broke, and the events of each cycle. */
#include "loadtest/faults/row.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIMES "What happened in each cycle"
#define TIMES_MAX 12  /* rows whose cycles are drawn; the JSON has the others */
#define NAMES_MAX 128 /* strategies; a stored result is somebody's file */

/* Adds NAME to the COUNT names, unless it is one of them. */
static size_t add_name(const char **names, size_t count, size_t most, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return count;
    if (count < most)
        names[count++] = name;
    return count;
}

static const json_t *find_row(const json_t *rows, const char *fault, const char *strategy)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (strcmp(result_text(row, "fault"), fault) == 0 &&
            strcmp(result_text(row, "strategy"), strategy) == 0)
            return row;
    }
    return NULL;
}

static void add_verdict(struct charts *charts, json_t *cells, const json_t *row)
{
    enum verdict verdict = result_verdict(row);
    if (!row || verdict == VERDICT_UNAVAILABLE)
        chart_add_cell(charts, cells, "–", 0);
    else if (verdict_fails(verdict))
        chart_add_cell(charts, cells, "! broken", CHART_WORST);
    else if (verdict == VERDICT_CAUGHT)
        chart_add_cell(charts, cells, "✗ flaw", 2);
    else
        chart_add_cell(charts, cells, "✓", 0);
}

/* The strategies as rows: they are more than the faults, and a page has more height than width. */
static void add_matrix(struct charts *charts, const json_t *rows)
{
    const char *faults_seen[CHART_COLUMNS_MAX + 1] = {NULL}, *names[NAMES_MAX];
    size_t i, j, fault_names = 0, named = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        fault_names = add_name(faults_seen, fault_names, CHART_COLUMNS_MAX, result_text(row, "fault"));
        named = add_name(names, named, NAMES_MAX, result_text(row, "strategy"));
    }
    json_t *chart = chart_add(
        charts,
        &(struct chart_look){.kind = CHART_MATRIX,
                             .title = "Strategies and faults",
                             .about = "✓: every guarantee held. ✗: the fault showed a flaw that the strategy "
                                      "is known to have. –: not tried.",
                             .x = ""});
    chart_name_marks(charts, chart, faults_seen);
    for (i = 0; i < named; i++) {
        json_t *cells = chart_add_cells(charts, chart, names[i]);
        for (j = 0; j < fault_names; j++)
            add_verdict(charts, cells, find_row(rows, faults_seen[j], names[i]));
    }
}

static void add_times(struct charts *charts, const json_t *row, bool first)
{
    static const char *const COLUMNS[] = {"outage ms", "recovery ms", "refused", "lost", NULL};
    static const char *const KEYS[] = {"outage_ms", "recovery_ms", "refused", "lost"};
    char title[160];
    size_t i, j;
    json_t *cycle;
    snprintf(title, sizeof title, "%.60s, %.60s", result_text(row, "fault"), result_text(row, "strategy"));
    json_t *chart = chart_add(
        charts,
        &(struct chart_look){
            .kind = CHART_SPANS,
            .title = title,
            .about =
                first
                    ? "The bar is the longest time after the fault without a successful order. Its blue end is the time from the repair to the next one."
                    : "",
            .x = "",
            .name_of_rows = "cycle",
            .group = TIMES});
    chart_name_marks(charts, chart, COLUMNS);
    json_array_foreach(json_object_get(row, "each_cycle"), i, cycle) {
        char name[24];
        double values[4];
        for (j = 0; j < 4; j++)
            values[j] = (double)result_number(cycle, KEYS[j]);
        snprintf(name, sizeof name, "%zu", i + 1);
        chart_add_row(charts, chart, name, values, 4);
    }
}

/* How much the times of a row show; 0 if its fault has none. */
static int64_t weight(const json_t *row)
{
    return result_number(row, "longest_outage_ms") == 0
               ? 0
               : (result_number(row, "lost") + result_number(row, "oversold")) * 1000000 +
                     result_number(row, "longest_outage_ms");
}

static bool has_times(const json_t *row)
{
    return json_array_size(json_object_get(row, "each_cycle")) > 0 && weight(row) > 0;
}

/* Draws those that show most. */
static void add_most_telling(struct charts *charts, const json_t *rows)
{
    const json_t *last = NULL;
    for (int drawn = 0; drawn < TIMES_MAX; drawn++) {
        const json_t *next = NULL;
        size_t i;
        json_t *row;
        bool passed = last == NULL;
        json_array_foreach(rows, i, row) {
            bool later = last && (weight(row) < weight(last) || (weight(row) == weight(last) && passed));
            passed = passed || row == last;
            if (has_times(row) && (!last || later) && row != last && (!next || weight(row) > weight(next)))
                next = row;
        }
        if (!next)
            return;
        add_times(charts, next, !last);
        last = next;
    }
}

json_t *faults_charts(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows");
    struct charts charts = {0};
    size_t i, count = 0;
    json_t *row;
    add_matrix(&charts, rows);
    add_most_telling(&charts, rows);
    json_array_foreach(rows, i, row) {
        count += has_times(row);
    }
    chart_count_group(&charts, TIMES, count);
    return charts_take(&charts);
}
