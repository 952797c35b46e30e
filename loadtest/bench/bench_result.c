/* How a result of `loadtest bench` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/bench/cases.h"

#include <stdio.h>

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
static void print_title(const json_t *document, char *ret_title, size_t size)
{
    const json_t *workers = json_object_get(json_object_get(document, "settings"), "workers");
    char settings[60] = "";
    if (json_integer_value(workers) > 0)
        snprintf(settings, sizeof settings, "The service with %lld workers; ",
                 (long long)json_integer_value(workers));
    else if (workers)
        snprintf(settings, sizeof settings, "The service with its default settings; ");
    snprintf(ret_title, size, "%s%soth sides measured in turn in one run; medians", settings,
             *settings ? "b" : "B");
}

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The parts of an additive ceiling. */
static bool note_rates(struct notes *notes, const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    double echo_per_s = real(row, "echo_per_s");
    if (echo_per_s <= 0)
        return true;
    char other[160];
    if (json_object_get(row, "script_per_s"))
        snprintf(other, sizeof other,
                 "the script in Redis without the service %.0f/s. Compared with POST /echo alone: %.3f.",
                 real(row, "script_per_s"), real(row, "numerator_per_s") / echo_per_s);
    else if (json_object_get(row, "get_product_per_s"))
        snprintf(other, sizeof other, "the same SQL in pgbench %.0f/s, GET /products/1 %.0f/s.",
                 real(row, "pgbench_per_s"), real(row, "get_product_per_s"));
    else
        snprintf(other, sizeof other, "the same SQL in pgbench %.0f/s.", real(row, "pgbench_per_s"));
    return notes_add(notes, NOTE_ADVICE,
                     "%s, for comparison: the same request without the database (POST /echo) %.0f/s, %s",
                     name, echo_per_s, other);
}

/* A lock that lets in two at once is handed over early; so its time is none. */
static bool note_together(struct notes *notes, const json_t *row)
{
    double together = real(row, "together");
    if (together <= 0)
        return true;
    return notes_add(
        notes, NOTE_WARNING,
        "%s: in %.3g %% of all acquisitions another thread still held the lock, so these are not hand-overs.",
        json_string_value(json_object_get(row, "name")), 100 * together);
}

static bool note_unavailable(struct notes *notes, const json_t *row)
{
    const char *reason = json_string_value(json_object_get(row, "reason"));
    return !reason || notes_add(notes, NOTE_WARNING, "%s: not available: %s",
                                json_string_value(json_object_get(row, "name")), reason);
}

static void print_headline(const json_t *document, char *ret_headline, size_t size)
{
    size_t i, goals = 0, missed = 0, used = 0;
    const json_t *row, *ratios = json_object_get(document, "ratios");
    json_array_foreach(ratios, i, row) {
        goals += json_is_boolean(json_object_get(row, "reached"));
        missed += json_is_false(json_object_get(row, "reached"));
    }
    ret_headline[0] = 0;
    if (goals == 0)
        return;
    used = (size_t)snprintf(ret_headline, size, "%zu of %zu goals reached", goals - missed, goals);
    size_t named = 0;
    json_array_foreach(ratios, i, row) {
        if (json_is_false(json_object_get(row, "reached")) && named < 3 && used < size)
            used += (size_t)snprintf(
                ret_headline + used, size - used, "%s%s (%.2f, goal %.2f)",
                named++ ? ", " : "; missed: ", json_string_value(json_object_get(row, "name")),
                real(row, "value"), real(row, "goal"));
    }
    if (used < size)
        snprintf(ret_headline + used, size - used, "%s.", missed > named ? " and more" : "");
}

static bool add_notes(const json_t *document, struct notes *notes)
{
    size_t i, goals = 0, reached = 0;
    const json_t *row, *ratios = json_object_get(document, "ratios");
    json_array_foreach(ratios, i, row) {
        const json_t *goal_reached = json_object_get(row, "reached");
        goals += json_is_boolean(goal_reached);
        reached += json_is_true(goal_reached);
        if (!note_rates(notes, row) || !note_together(notes, row) || !note_unavailable(notes, row))
            return false;
    }
    return notes_add_busy_machine(notes, document) &&
           (goals == 0 || notes_add(notes, NOTE_CLOSING, "%zu of %zu goals reached.", reached, goals));
}

const struct result_kind bench_result = {
    .name = "bench",
    .rows = "ratios",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("name", "value", "min", "max", "goal", "reached", "numerator_per_s", "denominator_per_s"),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .charts = bench_charts,
};
