/* How a result of `bench` is printed: its columns, its title, its notes and its pictures. */
#include "loadtest/measured/measured.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    {"name", "ratio", COLUMN_TEXT, 0, SHOW_ALL, 0, "the compared cases"},
    {"value", "value", COLUMN_NUMBER, 3, SHOW_ALL, 0, "median of all rounds; the service has its default settings, or those of --workers"},
    {"min", "min", COLUMN_NUMBER, 3, SHOW_ALL, 2, "minimum of all rounds"},
    {"max", "max", COLUMN_NUMBER, 3, SHOW_ALL, 3, "maximum of all rounds"},
    {"tuned_value", "tuned", COLUMN_NUMBER, 3, SHOW_ALL, 1, "median if the service has the best number of workers"},
    {"goal", "goal", COLUMN_NUMBER, 2, SHOW_ALL, 0, "the goal for the median, if there is one"},
    {"reached", "goal\nreached", COLUMN_MARK, 0, SHOW_ALL, 0, "whether the median reaches the goal"},
    {"better", "better", COLUMN_TEXT, 0, SHOW_ALL, 5, "whether higher or lower is better"},
    {"numerator_per_s", "measured\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 1, "rate of the measured case, per second"},
    {"tuned_per_s", "tuned\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 6, "the same if the service has the best number of workers"},
    {"denominator_per_s", "against\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 1, "rate of the case that it is compared with, per second"},
    {"with", "with, against", COLUMN_TEXT, 0, SHOW_ALL, 4,
     "the case that it is compared with, and the best numbers of clients and workers; the parts of a latency or a hand-over"},
    {"median_ms", "median ms", COLUMN_NUMBER, 3, SHOW_CSV, 0, "half of the answers took at most this long"},
    {"p99_ms", "p99 ms", COLUMN_NUMBER, 3, SHOW_CSV, 0, "99 of 100 answers took at most this long"},
    {"hand_over_ms", "hand-over ms", COLUMN_NUMBER, 3, SHOW_CSV, 0, "time from the start of a release until the next holder has the lock"},
    {"cycle_ms", "cycle ms", COLUMN_NUMBER, 3, SHOW_CSV, 0, "time of one acquisition and its release without competitors"},
    {"wake_ups_per_release", "wake-ups", COLUMN_NUMBER, 1, SHOW_CSV, 0, "waiters that wake up per release"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0, "why the case was not measured"},
};
/* clang-format on */

/* Results of earlier versions, which have no such setting, were measured with the best number of workers only. */
static void print_title(const json_t *document, FILE *out)
{
    const json_t *workers = json_object_get(json_object_get(document, "settings"), "workers");
    char settings[60] = "";
    if (json_integer_value(workers) > 0)
        snprintf(settings, sizeof settings, "The service with %lld workers; ",
                 (long long)json_integer_value(workers));
    else if (workers)
        snprintf(settings, sizeof settings, "The service with its default settings; ");
    fprintf(out, "%s%soth sides measured in turn in one run; medians", settings, *settings ? "b" : "B");
}

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The parts of an additive ceiling. */
static void note_rates(struct notes *notes, const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    double echo_per_s = real(row, "echo_per_s");
    if (echo_per_s <= 0)
        return;
    char other[240];
    double pgbench_per_s = real(row, "pgbench_per_s");
    if (json_object_get(row, "script_per_s"))
        snprintf(other, sizeof other,
                 "the script in Redis without the service %.0f/s. Compared with POST /echo alone: %.3f.",
                 real(row, "script_per_s"), real(row, "numerator_per_s") / echo_per_s);
    else if (json_object_get(row, "get_product_per_s"))
        snprintf(other, sizeof other, "the same SQL in pgbench %.0f/s, GET /products/1 %.0f/s.",
                 pgbench_per_s, real(row, "get_product_per_s"));
    else if (real(row, "denominator_per_s") == pgbench_per_s)
        snprintf(
            other, sizeof other,
            "the same SQL in pgbench %.0f/s. If their times add up, 1 / (1/echo + 1/pgbench), the ratio can be at "
            "most %.3f.",
            pgbench_per_s, echo_per_s / (echo_per_s + pgbench_per_s));
    else
        snprintf(other, sizeof other, "the same SQL in pgbench %.0f/s.", pgbench_per_s);
    notes_add(notes, NOTE_ADVICE,
              "%s, for comparison: the same request without the database (POST /echo) %.0f/s, %s", name,
              echo_per_s, other);
}

/* A lock that lets in two at once is handed over early; so its time is none. */
static void note_together(struct notes *notes, const json_t *row)
{
    double together = real(row, "together");
    if (together > 0)
        notes_add(
            notes, NOTE_WARNING,
            "%s: in %.3g %% of all acquisitions another thread still held the lock, so these are not hand-overs.",
            json_string_value(json_object_get(row, "name")), 100 * together);
}

static void note_unavailable(struct notes *notes, const json_t *row)
{
    const char *reason = json_string_value(json_object_get(row, "reason"));
    if (reason)
        notes_add(notes, NOTE_WARNING, "%s: not available: %s",
                  json_string_value(json_object_get(row, "name")), reason);
}

static void print_headline(const json_t *document, FILE *out)
{
    size_t i, goals = 0, missed = 0;
    const json_t *row, *ratios = json_object_get(document, "ratios");
    json_array_foreach(ratios, i, row) {
        goals += json_is_boolean(json_object_get(row, "reached"));
        missed += json_is_false(json_object_get(row, "reached"));
    }
    if (goals == 0)
        return;
    fprintf(out, "%zu of %zu goals reached", goals - missed, goals);
    size_t named = 0;
    json_array_foreach(ratios, i, row) {
        if (json_is_false(json_object_get(row, "reached")) && named < 3)
            fprintf(out, "%s%s (%.2f, goal %.2f)",
                    named++ ? ", " : "; missed: ", json_string_value(json_object_get(row, "name")),
                    real(row, "value"), real(row, "goal"));
    }
    fputs(missed > named ? " and more." : ".", out);
}

static void add_notes(const json_t *document, struct notes *notes)
{
    size_t i, goals = 0, reached = 0;
    const json_t *row, *ratios = json_object_get(document, "ratios");
    json_array_foreach(ratios, i, row) {
        const json_t *goal_reached = json_object_get(row, "reached");
        goals += json_is_boolean(goal_reached);
        reached += json_is_true(goal_reached);
        note_rates(notes, row);
        note_together(notes, row);
        note_unavailable(notes, row);
    }
    notes_add_busy_machine(notes, document);
    if (goals > 0)
        notes_add(notes, NOTE_CLOSING, "%zu of %zu goals reached.", reached, goals);
}

/* ---- pictures ------------------------------------------------------------------------------------------ */

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

static json_t *make_charts(const json_t *document)
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

const struct result_kind bench_result = {
    .name = "bench",
    .rows = "ratios",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("name", "value", "min", "max", "goal", "reached", "numerator_per_s", "denominator_per_s"),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .charts = make_charts,
};
