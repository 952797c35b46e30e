/* The result of a search of a specification: its columns, its title, and the notes below the table. */
#include "loadtest/sqlspec/spec_result.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    {"outcome", "outcome", COLUMN_TEXT, 0, SHOW_ALL, 0, "the anomaly or error; serial: the same as in a serial execution"},
    {"sessions", "sessions", COLUMN_TEXT, 0, SHOW_ALL, 0, "the sessions that the anomaly involves, or whose transactions were ended"},
    {"schedules", "schedules", COLUMN_NUMBER, 0, SHOW_ALL, 0, "schedules with this outcome"},
    {"share", "share", COLUMN_NUMBER, 3, SHOW_ALL, 2, "of all schedules"},
    {"schedule", "schedule", COLUMN_TEXT, 0, SHOW_PAGE | SHOW_CSV, 0, "the simplest schedule with this outcome, for --replay"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0, "ok; anomaly: no serial execution gives this outcome; invariant-broken"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    int64_t schedules = result_number(document, "schedules");
    fprintf(out, "%.200s: %" PRId64 " schedule%s%s of %" PRId64 " sessions, %" PRId64 " different outcome%s",
            result_text(settings, "file"), schedules, schedules == 1 ? "" : "s",
            json_is_true(json_object_get(document, "complete")) ? ", all" : "",
            result_number(settings, "sessions"), result_number(document, "outcomes"),
            result_number(document, "outcomes") == 1 ? "" : "s");
}

static void add_row_notes(const json_t *row, struct notes *notes)
{
    const char *outcome = result_text(row, "outcome"), *broken = result_text(row, "broken_invariant"),
               *schedule = result_text(row, "schedule");
    if (strcmp(outcome, "serial") != 0)
        notes_add(notes, NOTE_WITNESS, "%s: %s Schedule: %s", outcome, result_text(row, "text"), schedule);
    if (*broken && strcmp(outcome, "serial") == 0)
        notes_add(
            notes, NOTE_WITNESS,
            "This invariant is not true even in a serial execution (%s), so the SQL is wrong without concurrency: "
            "%.300s",
            schedule, broken);
    else if (*broken)
        notes_add(notes, NOTE_WITNESS, "This invariant is not true: %.300s", broken);
}

/* The outcomes of a search without an anomaly: all are serial, or the error by which the server ended a transaction. */
static void add_closing_of_all(const json_t *rows, struct notes *notes)
{
    char errors[200] = "";
    size_t i, used = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        const char *outcome = result_text(row, "outcome");
        if (strcmp(outcome, "serial") != 0 && used < sizeof errors)
            used += (size_t)snprintf(errors + used, sizeof errors - used, "%s%s", used ? ", " : "", outcome);
    }
    notes_add(notes, NOTE_CLOSING, "No anomaly: every schedule has the outcome of a serial execution%s%s%s.",
              used ? ", or of one without the transactions that the server ended (" : "", errors,
              used ? ")" : "");
}

/* Results that were stored before searches left schedules out have no "run". */
static void add_reduction(const json_t *document, struct notes *notes)
{
    const int64_t run = result_number(document, "run"), schedules = result_number(document, "schedules");
    if (run > 0 && run < schedules)
        notes_add(
            notes, NOTE_ADVICE,
            "%" PRId64 " of the %" PRId64
            " schedules were run. Each of the others differs from one of them only in the sequence of steps "
            "that touch different tables, so it has the same outcome. --reduce none runs all.",
            run, schedules);
}

static void add_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i, failures;
    json_t *row, *warning;
    size_t counts[VERDICT_COUNT];
    json_array_foreach(rows, i, row) {
        add_row_notes(row, notes);
    }
    json_array_foreach(json_object_get(document, "warnings"), i, warning) {
        notes_add(notes, NOTE_WARNING, "%s", json_string_value(warning));
    }
    add_reduction(document, notes);
    bool complete = json_is_true(json_object_get(document, "complete"));
    failures = result_verdicts(rows, counts) - counts[VERDICT_NOT_EXPLORED];
    const char *undivided = result_text(document, "undivided_step");
    if (failures == 0 && counts[VERDICT_NOT_EXPLORED] > 0)
        notes_add(notes, NOTE_CLOSING,
                  "No schedule has an anomaly, and this search does NOT show that there is none.");
    else if (failures > 0)
        notes_add(notes, NOTE_CLOSING, "%zu kind%s of anomaly or broken invariant found.", failures,
                  failures == 1 ? "" : "s");
    else if (*undivided)
        notes_add(notes, NOTE_CLOSING,
                  "No anomaly was found, but no schedule lets another session act inside step %s.",
                  undivided);
    else if (complete)
        add_closing_of_all(rows, notes);
    else
        notes_add(notes, NOTE_CLOSING, "No anomaly was found, but a limit left schedules out.");
}

const struct result_kind specification_result = {
    .name = "specification",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .notes = add_notes,
};
