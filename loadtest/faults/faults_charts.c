/* The charts of a fault run: the strategies that each fault broke, and the events of each cycle. */
#include "loadtest/faults/row.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <math.h>
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

/* The times of the events of a cycle, in seconds since its fault began. NaN: the event did not happen, or the result is of an earlier
 * version that did not record it. */
struct times {
    double repaired, next, outage_begin, outage_end;
};

static struct times times_of(const json_t *cycle)
{
    double repaired = result_figure(cycle, "repaired_ms") / 1e3,
           outage = result_figure(cycle, "outage_from_ms") / 1e3;
    bool stuck = json_is_true(json_object_get(cycle, "stuck"));
    return (struct times){.repaired = repaired,
                          .next = stuck ? NAN : repaired + result_figure(cycle, "recovery_ms") / 1e3,
                          .outage_begin = outage,
                          .outage_end = outage + result_figure(cycle, "outage_ms") / 1e3};
}

/* The time of the last event in any cycle of a row. */
static double end_of(const json_t *row)
{
    double end = 0;
    size_t i;
    json_t *cycle;
    json_array_foreach(json_object_get(row, "each_cycle"), i, cycle) {
        struct times times = times_of(cycle);
        end = fmax(end, fmax(times.repaired, fmax(times.next, times.outage_end)));
    }
    return end;
}

static void add_times(struct charts *charts, const json_t *row, double x_most, bool first)
{
    static const char *const MARKS[] = {"fault begins",  "fault ends",  "next order",
                                        "outage begins", "outage ends", NULL};
    char title[160];
    size_t i;
    json_t *cycle;
    snprintf(title, sizeof title, "%.60s, %.60s", result_text(row, "fault"), result_text(row, "strategy"));
    json_t *chart = chart_add(
        charts,
        &(struct chart_look){
            .kind = CHART_SPANS,
            .title = title,
            .about =
                first
                    ? "The bar is the outage: the longest time without a successful order. These pictures share one time axis."
                    : "",
            .x = "seconds since the fault began",
            .x_most = x_most,
            .decimals = 2,
            .name_of_rows = "cycle",
            .group = TIMES});
    chart_name_marks(charts, chart, MARKS);
    json_array_foreach(json_object_get(row, "each_cycle"), i, cycle) {
        char name[64];
        struct times times = times_of(cycle);
        int64_t lost = result_number(cycle, "lost");
        int used = snprintf(name, sizeof name, "%zu", i + 1);
        if (lost > 0)
            snprintf(name + used, sizeof name - (size_t)used, ", %" PRId64 " lost", lost);
        chart_add_row(charts, chart, name,
                      (double[]){0, times.repaired, times.next, times.outage_begin, times.outage_end}, 5);
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
    return end_of(row) > 0 && weight(row) > 0;
}

/* Draws the rows with the most damage, then those with the longest outages, on one axis. */
static void add_most_telling(struct charts *charts, const json_t *rows)
{
    const json_t *chosen[TIMES_MAX];
    double x_most = 0;
    size_t count = 0, i;
    while (count < TIMES_MAX) {
        const json_t *next = NULL, *last = count > 0 ? chosen[count - 1] : NULL;
        json_t *row;
        bool passed = last == NULL;
        json_array_foreach(rows, i, row) {
            bool later = last && (weight(row) < weight(last) || (weight(row) == weight(last) && passed));
            passed = passed || row == last;
            if (has_times(row) && (!last || later) && row != last && (!next || weight(row) > weight(next)))
                next = row;
        }
        if (!next)
            break;
        x_most = fmax(x_most, end_of(next));
        chosen[count++] = next;
    }
    for (i = 0; i < count; i++)
        add_times(charts, chosen[i], x_most, i == 0);
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
