/* How a result of `loadtest bench` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/bench/cases.h"

#include <math.h>
#include <stdio.h>

#define BUSY_SHARE 0.25 /* of the processors, that somebody else used before the start */

/* clang-format off */
static const struct column COLUMNS[] = {
    {"name", "ratio", COLUMN_TEXT, 0, SHOW_ALL, 0, "the compared cases"},
    {"value", "value", COLUMN_NUMBER, 3, SHOW_ALL, 0, "median of all rounds"},
    {"min", "min", COLUMN_NUMBER, 3, SHOW_ALL, 2, "minimum of all rounds"},
    {"max", "max", COLUMN_NUMBER, 3, SHOW_ALL, 3, "maximum of all rounds"},
    {"goal", "goal", COLUMN_NUMBER, 2, SHOW_ALL, 0, "the goal for the median, if there is one"},
    {"reached", "goal\nreached", COLUMN_MARK, 0, SHOW_ALL, 0, "whether the median reaches the goal"},
    {"better", "better", COLUMN_TEXT, 0, SHOW_ALL, 5, "whether higher or lower is better"},
    {"numerator_per_s", "measured\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 1, "rate of the measured case, per second"},
    {"denominator_per_s", "against\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 1, "rate of the case that it is compared with, per second"},
    {"with", "with, against", COLUMN_TEXT, 0, SHOW_ALL, 4,
     "the case that it is compared with, and the best number of workers and clients; the parts of a hand-over"},
    {"hand_over_ms", "hand-over ms", COLUMN_NUMBER, 3, SHOW_CSV, 0, "time from the start of a release until the next holder has the lock"},
    {"cycle_ms", "cycle ms", COLUMN_NUMBER, 3, SHOW_CSV, 0, "time of one acquisition and its release without competitors"},
    {"wake_ups_per_release", "wake-ups", COLUMN_NUMBER, 1, SHOW_CSV, 0, "waiters that wake up per release"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0, "why the case was not measured"},
};
/* clang-format on */

static void print_title(const json_t *document, char *ret_title, size_t size)
{
    (void)document;
    snprintf(ret_title, size, "Both sides measured in turn in one run; medians");
}

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static bool note_rates(struct notes *notes, const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    if (json_object_get(row, "unlimited_per_s"))
        return notes_add(notes, NOTE_ADVICE, "%s: %.0f/s without the limit.", name,
                         real(row, "unlimited_per_s"));
    if (!json_object_get(row, "echo_per_s"))
        return true;
    char product[60] = "";
    if (json_object_get(row, "get_product_per_s"))
        snprintf(product, sizeof product, ", GET /products/1 %.0f/s", real(row, "get_product_per_s"));
    return notes_add(
        notes, NOTE_ADVICE,
        "%s, for comparison: the same request without the database (POST /echo) %.0f/s, the same SQL "
        "in pgbench %.0f/s%s.",
        name, real(row, "echo_per_s"), real(row, "pgbench_per_s"), product);
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

static bool note_busy_machine(struct notes *notes, const json_t *document)
{
    double load = real(json_object_get(document, "settings"), "load_average");
    double cpus = real(json_object_get(document, "machine"), "cpus");
    if (load <= BUSY_SHARE * fmax(cpus, 1))
        return true;
    return notes_add(
        notes, NOTE_WARNING,
        "The machine was busy before the start (load average %.1f on %.0f processors): repeat the measurement "
        "on an idle machine.",
        load, cpus);
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
    return note_busy_machine(notes, document) &&
           (goals == 0 || notes_add(notes, NOTE_CLOSING, "%zu of %zu goals reached.", reached, goals));
}

const struct result_kind bench_result = {
    .name = "bench",
    .rows = "ratios",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .notes = add_notes,
};
