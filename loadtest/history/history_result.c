/* How a comparison of results is printed: its columns, its title, its notes and its pictures. */
#include "loadtest/history/history.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAMED_MAX 3 /* differences that the headline names */
#define PICTURES "Over all results"
#define PICTURES_MAX 12 /* figures that are drawn over the results */

/* clang-format off */
static const struct column COLUMNS[] = {
    {"row", "of", COLUMN_TEXT, 0, SHOW_ALL, 0, "the strategy, or what else the row of the results is about"},
    {"figure", "figure", COLUMN_TEXT, 0, SHOW_ALL, 0, "what is compared"},
    {"first", "first", COLUMN_NUMBER, 2, SHOW_ALL, 0, "its value in the first result"},
    {"last", "last", COLUMN_NUMBER, 2, SHOW_ALL, 0, "its value in the last result"},
    {"change_percent", "change\n%", COLUMN_NUMBER, 1, SHOW_ALL, 0, "from the first result to the last one"},
    {"assessment", "assessment", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "better or worse than the first result: the ranges of their runs do not overlap, or an exact count differs. Only bench, and compare with --repeat, store a spread"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    size_t i;
    json_t *file;
    const json_t *files = json_object_get(document, "files");
    fprintf(out, "%zu results of %s: ", json_array_size(files),
            result_text(json_object_get(document, "settings"), "of"));
    json_array_foreach(files, i, file) {
        fprintf(out, "%s%.60s (%.10s)", i ? ", " : "", result_text(file, "name"), result_text(file, "at"));
    }
}

static void print_headline(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i, marked = 0, unknown = 0, named = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        marked += history_differs(row);
        unknown += history_says(row, "spread unknown");
    }
    if (marked == 0 && unknown == 0) {
        fprintf(out, "No figure differs beyond the spread of the runs.");
        return;
    }
    if (marked == 0) {
        fprintf(out, "No figure differs by more than its spread. %zu figure%s no stored spread.", unknown,
                unknown == 1 ? " has" : "s have");
        return;
    }
    fprintf(out, "%zu of %zu figures differ%s beyond the spread", marked, json_array_size(rows),
            marked == 1 ? "s" : "");
    json_array_foreach(rows, i, row) {
        if (!history_differs(row) || named >= NAMED_MAX)
            continue;
        const json_t *change = json_object_get(row, "change_percent");
        char percent[32] = "";
        if (json_is_number(change) &&
            !strchr(result_text(row, "assessment"), ' ')) /* else it is another result's */
            snprintf(percent, sizeof percent, " by %.0f %%", fabs(json_number_value(change)));
        fprintf(out, "%s%.60s %s%s (%.40s)", named++ ? ", " : ": ", result_text(row, "row"),
                result_text(row, "assessment"), percent, result_text(row, "figure"));
    }
    fputs(marked > named ? " and more." : ".", out);
}

static void add_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows"),
                 *differing = json_object_get(document, "settings_that_differ");
    size_t i, better = 0, worse = 0, changed = 0, unknown = 0;
    json_t *row, *name;
    json_array_foreach(differing, i, name) {
        notes_add(notes, NOTE_WARNING, "The results were measured with different settings: %s.",
                  json_string_value(name));
    }
    if (json_is_false(json_object_get(document, "same_machine")))
        notes_add(notes, NOTE_ADVICE, "The results are from different machines.");
    json_array_foreach(rows, i, row) {
        better += history_says(row, "better");
        worse += history_says(row, "worse");
        changed += history_says(row, "changed");
        unknown += history_says(row, "spread unknown");
    }
    if (unknown > 0)
        notes_add(
            notes, NOTE_ADVICE,
            "%zu figures have no spread, so a difference may be chance. compare stores one with --repeat 3; bench "
            "always does.",
            unknown);
    notes_add(notes, NOTE_CLOSING, "%zu figures: %zu better, %zu worse, %zu changed.", json_array_size(rows),
              better, worse, changed);
}

/* ---- pictures ------------------------------------------------------------------------------------------ */

static void add_changes(struct charts *charts, const json_t *rows)
{
    size_t i;
    json_t *row;
    json_t *chart = chart_add(charts, &(struct chart_look){.kind = CHART_MATRIX,
                                                           .title = "Differences beyond the spread",
                                                           .about = "From the first result to the last one.",
                                                           .x = "",
                                                           .name_of_rows = "of"});
    chart_name_marks(charts, chart, (const char *const[]){"figure", "change", "assessment", NULL});
    json_array_foreach(rows, i, row) {
        char change[40] = "–";
        const json_t *percent = json_object_get(row, "change_percent");
        int level = history_says(row, "worse") ? 3 : history_says(row, "changed") ? 2 : 0;
        if (!history_differs(row))
            continue;
        if (json_is_number(percent))
            snprintf(change, sizeof change, "%+.1f %%", json_number_value(percent));
        json_t *cells = chart_add_cells(charts, chart, result_text(row, "row"));
        chart_add_cell(charts, cells, result_text(row, "figure"), 0);
        chart_add_cell(charts, cells, change, level);
        chart_add_cell(charts, cells, result_text(row, "assessment"), level);
    }
}

/* One figure over all results. */
static void add_figure(struct charts *charts, const json_t *row)
{
    char title[160];
    size_t i;
    json_t *value;
    snprintf(title, sizeof title, "%.80s", result_text(row, "row"));
    json_t *chart = chart_add(charts, &(struct chart_look){.kind = CHART_LINES,
                                                           .title = title,
                                                           .about = result_text(row, "assessment"),
                                                           .x = "result",
                                                           .y = result_text(row, "figure"),
                                                           .decimals = 2,
                                                           .group = PICTURES});
    json_t *series = chart_add_series(charts, chart, result_text(row, "figure"), 0);
    json_array_foreach(json_object_get(row, "values"), i, value) {
        char label[24];
        snprintf(label, sizeof label, "%zu", i + 1);
        chart_add_point(charts, series, (double)(i + 1),
                        json_is_number(value) ? json_number_value(value) : NAN);
        chart_add_tic(charts, chart, (double)(i + 1), label);
    }
}

static bool has_numbers(const json_t *row)
{
    size_t i, count = 0;
    json_t *value;
    json_array_foreach(json_object_get(row, "values"), i, value) {
        count += json_is_number(value);
    }
    return count > 1;
}

static json_t *make_charts(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows");
    struct charts charts = {0};
    size_t i, marked = 0, count = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        marked += history_differs(row);
    }
    if (marked > 0)
        add_changes(&charts, rows);
    for (int first = 1; first >= 0; first--) {
        json_array_foreach(rows, i, row) {
            if (history_differs(row) == (first == 1) && has_numbers(row) && count++ < PICTURES_MAX)
                add_figure(&charts, row);
        }
    }
    chart_count_group(&charts, PICTURES, count);
    return charts_take(&charts);
}

const struct result_kind history_result = {
    .name = "history",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .charts = make_charts,
};
