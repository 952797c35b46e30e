/* Several explorations with different faults as one result: what each fault does to each strategy. */
#include "loadtest/explore/run/fault_matrix.h"

#include "loadtest/chart/chart.h"
#include "loadtest/cli/complain.h"
#include "loadtest/explore/run/explore_result.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NARROW "\u00a0" /* a space at which no line breaks */
#define NO_FAULT "none"
#define LARGER_ORDERS "orders of two" /* the second search of an exploration without faults */

/* What can go wrong in a schedule. The first that occurred names a cell: a schedule that oversells has drift as well. */
static const struct damage {
    const char *key, *word;
} DAMAGE[] = {{"oversold", "oversold"},
              {"drift", "units lost"},
              {"stuck_locks", "lock stuck"},
              {"robbed", "lock stolen"},
              {"two_holders", "two holders"}};

/* clang-format off */
static const struct column COLUMNS[] = {
    STRATEGY_COLUMN,
    {"faults", "faults", COLUMN_TEXT, 0, SHOW_ALL, 0, "what the explorer made happen"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0, "whether the strategy kept its guarantee"},
    {"bad", "bad", COLUMN_NUMBER, 0, SHOW_ALL, 0, "schedules with the damage of the next column"},
    {"damage", "damage", COLUMN_TEXT, 0, SHOW_ALL, 0, "what went wrong in them; of several kinds the gravest"},
    {"schedules", "sched-\nules", COLUMN_NUMBER, 0, SHOW_ALL, 0, "interleavings of the steps that were run"},
    {"coverage", "cover-\nage", COLUMN_NUMBER, 3, SHOW_ALL, 1, "share of the schedules that was run; 1 is all"},
    {"bad_percent", "bad\n%", COLUMN_NUMBER, 1, SHOW_ALL, 0, "share of the schedules that were run"},
    {"guarantee", "guarantee", COLUMN_TEXT, 0, SHOW_ALL, 2, "when the strategy prevents oversells"},
    {"witness.replay", "counterexample", COLUMN_TEXT, 0, SHOW_CSV | SHOW_PAGE, 0, "the simplest one, for --replay"},
};
/* clang-format on */

/* ---- the document -------------------------------------------------------------------------------------- */

static const char *faults_of(const json_t *result)
{
    return result_text(json_object_get(result, "settings"), "faults");
}

/* Schedules of other orders are no others of the same strategy. */
static bool has_same_orders(const json_t *a, const json_t *b)
{
    static const char *const KEYS[] = {"actors", "stock", "quantities"};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        const json_t *of_a = json_object_get(json_object_get(a, "settings"), KEYS[i]),
                     *of_b = json_object_get(json_object_get(b, "settings"), KEYS[i]);
        if (of_a != of_b && !json_equal(of_a, of_b))
            return false;
    }
    return true;
}

bool fault_matrix_fits(json_t *const *results, size_t count)
{
    bool differ = false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(result_kind_name(results[i]), explore_result.name) != 0 ||
            !has_same_orders(results[i], results[0]))
            return false;
        differ |= strcmp(faults_of(results[i]), faults_of(results[0])) != 0;
    }
    return differ;
}

static bool is_complete(const json_t *row)
{
    return json_is_true(json_object_get(row, "complete"));
}

/* The place of the row of STRATEGY and FAULTS; the end if there is none. */
static size_t place_of(const json_t *rows, const char *strategy, const char *faults)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (strcmp(result_text(row, "strategy"), strategy) == 0 &&
            strcmp(result_text(row, "faults"), faults) == 0)
            break;
    }
    return i;
}

/* Adds what an exploration says of a strategy. It replaces what an earlier one said, unless that one ran all schedules and this one
 * did not. */
static bool put_row(json_t *rows, const json_t *found, const char *strategy, const char *faults)
{
    const char *damage = "";
    int64_t bad = 0, schedules = result_number(found, "schedules");
    json_t *row = json_copy((json_t *)found);
    for (size_t i = 0; i < sizeof DAMAGE / sizeof DAMAGE[0] && bad == 0; i++) {
        bad = result_number(found, DAMAGE[i].key);
        damage = bad > 0 ? DAMAGE[i].word : "";
    }
    json_auto_t *more = json_pack("{s:s, s:s, s:I, s:s, s:o}", "strategy", strategy, "faults", faults, "bad",
                                  (json_int_t)bad, "damage", damage, "bad_percent",
                                  schedules > 0 ? json_real(100 * (double)bad / (double)schedules)
                                                : json_null());
    size_t place = place_of(rows, strategy, faults);
    if (is_complete(json_array_get(rows, place)) && !is_complete(found)) {
        json_decref(row);
        return true;
    }
    if (!row || !more || json_object_update(row, more) != 0) {
        json_decref(row);
        return false;
    }
    return (place < json_array_size(rows) ? json_array_set_new(rows, place, row)
                                          : json_array_append_new(rows, row)) == 0;
}

static bool put_rows(json_t *rows, const json_t *result)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(result, "rows"), i, row) {
        const char *strategy = result_text(row, "strategy");
        const json_t *larger = json_object_get(row, "larger_orders");
        if (!put_row(rows, row, strategy, faults_of(result)) ||
            (result_number(larger, "schedules") > 0 && !put_row(rows, larger, strategy, LARGER_ORDERS)))
            return false;
    }
    return true;
}

json_t *fault_matrix_new(json_t *const *results, const char *const *names, size_t count)
{
    json_auto_t *rows = json_array(), *files = json_array();
    bool ok = rows && files;
    for (int without = 1; without >= 0; without--) /* those without faults come first */
        for (size_t i = 0; i < count && ok; i++)
            if ((strcmp(faults_of(results[i]), NO_FAULT) == 0) == without)
                ok = put_rows(rows, results[i]) && json_array_append_new(files, json_string(names[i])) == 0;
    const json_t *settings = json_object_get(results[0], "settings");
    json_t *document = ok ? result_new(fault_matrix_result.name,
                                       json_pack("{s:O, s:O?, s:O?}", "files", files, "actors",
                                                 json_object_get(settings, "actors"), "stock",
                                                 json_object_get(settings, "stock")))
                          : NULL;
    if (document && json_object_set(document, "rows", rows) == 0)
        return document;
    complain("out of memory");
    json_decref(document);
    return NULL;
}

/* ---- words --------------------------------------------------------------------------------------------- */

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    fprintf(out, "%zu explorations of %" PRId64 " orders with a stock of %" PRId64 ", with different faults",
            json_array_size(json_object_get(settings, "files")), result_number(settings, "actors"),
            result_number(settings, "stock"));
}

/* What a strategy showed with all faults together. */
struct summary {
    bool bad, searched; /* with any fault; completely with each */
};

static struct summary summary_of(const json_t *rows, const char *strategy)
{
    struct summary summary = {.searched = true};
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (strcmp(result_text(row, "strategy"), strategy) != 0)
            continue;
        summary.bad |= result_number(row, "bad") > 0;
        summary.searched &= is_complete(row);
    }
    return summary;
}

/* Is this the first row of its strategy? */
static bool begins(const json_t *rows, size_t i)
{
    const char *strategy = result_text(json_array_get(rows, i), "strategy");
    return result_find(rows, strategy) == json_array_get(rows, i);
}

static void print_headline(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i, strategies = 0, bad = 0, clean = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (!begins(rows, i))
            continue;
        struct summary summary = summary_of(rows, result_text(row, "strategy"));
        strategies++;
        bad += summary.bad;
        clean += !summary.bad && summary.searched;
    }
    fprintf(out, "%zu of %zu strategies have bad schedules; %zu have none, with any of these faults.", bad,
            strategies, clean);
}

static void add_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t counts[VERDICT_COUNT], failed = result_verdicts(rows, counts);
    if (failed > 0)
        notes_add(notes, NOTE_CLOSING, "%zu of %zu explorations of a strategy are not as expected.", failed,
                  json_array_size(rows));
    else
        notes_add(notes, NOTE_CLOSING, "%zu explorations of a strategy, all as expected.",
                  json_array_size(rows));
}

/* ---- the matrix ---------------------------------------------------------------------------------------- */

static void add_cell(struct charts *charts, json_t *cells, const json_t *row)
{
    char text[80];
    int64_t bad = result_number(row, "bad"), schedules = result_number(row, "schedules");
    double share = schedules > 0 ? (double)bad / (double)schedules : 0;
    if (schedules == 0)
        chart_add_cell(charts, cells, "–", 0);
    else if (bad == 0)
        chart_add_cell(charts, cells, is_complete(row) ? "✓" : "?", 0);
    else {
        const char *damage = result_text(row, "damage");
        bool plain = strcmp(damage, DAMAGE[0].word) == 0;
        snprintf(text, sizeof text, "%s%.0f" NARROW "%%%s%.40s", share < 0.01 ? "<" : "",
                 share < 0.01 ? 1 : share * 100, plain ? "" : " ", plain ? "" : damage);
        chart_add_cell(charts, cells, text, 1 + (int)(share < 1 ? share * CHART_WORST : CHART_WORST - 1));
    }
}

/* The first row of each strategy that has a counterexample: the simplest faults come first. NULL when out of memory. */
static json_t *first_counterexamples(const json_t *rows)
{
    json_t *found = json_array(), *row;
    size_t i;
    json_array_foreach(rows, i, row) {
        if (json_is_object(json_object_get(row, "witness")) &&
            !result_find(found, result_text(row, "strategy")))
            json_array_append(found, row);
    }
    return found;
}

static json_t *make_charts(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows");
    const char *faults[CHART_COLUMNS_MAX + 1] = {NULL};
    struct charts charts = {0};
    size_t i, j, count = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        for (j = 0; j < count && strcmp(faults[j], result_text(row, "faults")) != 0; j++)
            ;
        if (j == count && count < CHART_COLUMNS_MAX)
            faults[count++] = result_text(row, "faults");
    }
    json_t *chart = chart_add(
        &charts,
        &(struct chart_look){
            .kind = CHART_MATRIX,
            .title = "Bad schedules by strategy and fault",
            .about =
                "Share of the schedules that oversold, or what else went wrong. ✓: none of all schedules. ?: none, but not all were run. –: not explored.",
            .x = ""});
    const char *heads[CHART_COLUMNS_MAX + 1] = {NULL};
    for (j = 0; j < count; j++)
        heads[j] = strcmp(faults[j], NO_FAULT) == 0 ? "no fault" : faults[j];
    chart_name_marks(&charts, chart, heads);
    json_array_foreach(rows, i, row) {
        const char *strategy = result_text(row, "strategy");
        if (!begins(rows, i))
            continue;
        json_t *cells = chart_add_cells(&charts, chart, strategy);
        for (j = 0; j < count; j++)
            add_cell(&charts, cells, json_array_get(rows, place_of(rows, strategy, faults[j])));
    }
    json_auto_t *shown = first_counterexamples(rows);
    explore_add_counterexamples(&charts, shown);
    return charts_take(&charts);
}

const struct result_kind fault_matrix_result = {
    .name = "explore-faults",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("strategy", "faults", "verdict", "bad", "damage", "schedules", "bad_percent"),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .charts = make_charts,
};
