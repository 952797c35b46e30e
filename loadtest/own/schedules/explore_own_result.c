/* The result of `loadtest explore shop.json`. */
#include "loadtest/own/schedules/explore_own_result.h"

#include "base/text.h"
#include "loadtest/chart/number_text.h"
#include "loadtest/cli/columns.h"
#include "loadtest/cli/plain_text.h"
#include "loadtest/cli/terminal.h"
#include "loadtest/own/cause/cause.h"
#include "loadtest/report/result.h"
#include "loadtest/search/schedule_notation.h"

#include <inttypes.h>
#include <string.h>

/* ---- a schedule as JSON --------------------------------------------------------------------------------------------- */

static json_t *name_of(unsigned actor)
{
    const char name[] = {actor_name(actor), '\0'};
    return json_string(name);
}

/* The requests for which a step waits; "another session" for one that is none of theirs, "a command" for what BLPOP waits for. */
static json_t *waits_for(const struct run_step *step)
{
    json_t *names = json_array();
    bool ok = names != NULL;
    for (unsigned i = 0; i < ACTORS_MAX && ok; i++)
        if (step->blockers & 1U << i)
            ok = json_array_append_new(names, name_of(i)) == 0;
    if (ok && step->blockers & RUN_WAITS_FOR_OTHERS)
        ok = json_array_append_new(names, json_string("another session")) == 0;
    if (ok && step->blockers & RUN_WAITS_FOR_COMMAND)
        ok = json_array_append_new(names, json_string("a command")) == 0;
    if (ok)
        return names;
    json_decref(names);
    return NULL;
}

static json_t *step_row(const struct run_step *step)
{
    json_t *row = json_pack("{s:o, s:s, s:s, s:b, s:o}", "actor", name_of(step->actor), "text", step->text,
                            "answer", step->answer, "waits", step->after == REQUEST_BLOCKED, "waits_for",
                            waits_for(step));
    if (row && step->has_stock &&
        (json_object_set_new(row, "stock", json_integer((json_int_t)step->stock.left)) != 0 ||
         json_object_set_new(row, "sold", json_integer((json_int_t)step->stock.sold)) != 0)) {
        json_decref(row);
        return NULL;
    }
    return row;
}

json_t *explored_schedule(const struct run_record *record, const char *schedule, size_t requests,
                          enum verdict verdict)
{
    char cause[CAUSE_TEXT] = "";
    json_auto_t *steps = json_array(), *answers = json_array();
    bool ok = steps && answers;
    for (size_t i = 0; i < record->count && ok; i++)
        ok = json_array_append_new(steps, step_row(&record->steps[i])) == 0;
    for (size_t i = 0; i < requests && ok; i++)
        ok = json_array_append_new(answers, json_integer(record->answers[i].status)) == 0;
    if (verdict != VERDICT_CLEAN)
        cause_of(record, verdict, cause);
    text_mend(cause);
    return ok ? json_pack("{s:s, s:s, s:s, s:I, s:I, s:O, s:O}", "schedule", schedule, "verdict",
                          verdict_name(verdict), "cause", cause, "sold", (json_int_t)record->after.sold,
                          "left", (json_int_t)record->after.left, "answers", answers, "steps", steps)
              : NULL;
}

/* ---- a schedule as text ----------------------------------------------------------------------------------------------- */

enum { CELL_TEXT = 2 * MESSAGE_TEXT };

static void print_step(const struct columns *columns, size_t number, const json_t *step)
{
    char cell[CELL_TEXT];
    size_t column = (size_t)(*result_text(step, "actor") - 'A'), i, length;
    const json_t *names = json_object_get(step, "waits_for"), *name;
    const char *answer = result_text(step, "answer");
    snprintf(cell, sizeof cell, "%zu: %s", number, result_text(step, "text"));
    columns_cell(columns, column, cell);
    if (json_is_true(json_object_get(step, "waits"))) {
        length = (size_t)snprintf(cell, sizeof cell, "  → waits for");
        json_array_foreach(names, i, name) {
            length += (size_t)snprintf(cell + length, sizeof cell - length, "%s %s", i ? "," : "",
                                       json_string_value(name));
        }
        if (*answer)
            snprintf(cell + length, sizeof cell - length, "; then %s", answer);
        columns_cell(columns, column, cell);
    } else if (*answer) {
        snprintf(cell, sizeof cell, "  → %s", answer);
        columns_cell(columns, column, cell);
    }
    if (json_object_get(step, "sold")) {
        snprintf(cell, sizeof cell, "  = stock %" PRId64 ", sold %" PRId64, result_number(step, "stock"),
                 result_number(step, "sold"));
        columns_cell(columns, column, cell);
    }
}

void explored_print(FILE *stream, const json_t *schedule, bool says_cause)
{
    const json_t *answers = json_object_get(schedule, "answers"), *steps = json_object_get(schedule, "steps");
    const struct columns columns = columns_of(stream, json_array_size(answers), terminal_width(stream));
    static const char *const NAMES[ACTORS_MAX] = {"A", "B", "C", "D"};
    size_t i;
    const json_t *item;
    bool frees = json_is_true(json_object_get(schedule, "frees"));
    (void)fprintf(stream, "\n%s\n", result_text(schedule, "schedule"));
    if (result_number(schedule, "occupied") > 0)
        (void)fprintf(stream,
                      "--occupied %" PRId64
                      "%s: further requests are held on as many connections, so the requests share "
                      "the last one of the pool%s.\n",
                      result_number(schedule, "occupied"), frees ? " --frees" : "",
                      frees ? " until each has sent a statement; then the pool gets another one" : "");
    if (says_cause && *result_text(schedule, "cause"))
        plain_print(stream, "%s\n", result_text(schedule, "cause"));
    (void)fputc('\n', stream);
    columns_names(&columns, NAMES);
    json_array_foreach(steps, i, item) {
        print_step(&columns, i + 1, item);
    }
    (void)fputc('\n', stream);
    json_array_foreach(answers, i, item) {
        (void)fprintf(stream, "%s was answered %" JSON_INTEGER_FORMAT ". ", NAMES[i],
                      json_integer_value(item));
    }
    (void)fprintf(stream, "Sold %" PRId64 ", %" PRId64 " left.\n", result_number(schedule, "sold"),
                  result_number(schedule, "left"));
}

/* ---- the table -------------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const struct column COLUMNS[] = {
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0, "clean: answers, stock and orders agree; not-explored: so they do, but another request can act inside a statement; else the first that applies of oversold, stuck, drift, invariant-broken, answers-lost, turned-away, failing"},
    {"schedules", "schedules", COLUMN_NUMBER, 0, SHOW_ALL, 0, "schedules with this verdict"},
    {"share", "share", COLUMN_NUMBER, 3, SHOW_ALL, 2, "of all schedules"},
    {"schedule", "schedule", COLUMN_TEXT, 0, SHOW_ALL, 3, "the one with the fewest switches between requests, for --replay"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    int64_t schedules = result_number(document, "schedules"), requests = result_number(settings, "requests"),
            instances = result_number(settings, "instances");
    const char *replay = result_text(settings, "replay");
    char what[200], number[NUMBER_MAX];
    if (*replay)
        snprintf(what, sizeof what, "schedule %.100s", replay);
    else
        snprintf(what, sizeof what, "%s schedule%s%s", number_text((double)schedules, 0, number),
                 schedules == 1 ? "" : "s",
                 json_is_true(json_object_get(document, "complete")) ? ", all" : "");
    fprintf(out, "%.150s: %s of %" PRId64 " requests for a stock of %" PRId64 ", %" PRId64 " instance%s",
            result_text(settings, "file"), what, requests, result_number(settings, "stock"), instances,
            instances == 1 ? "" : "s");
}

/* Results that were stored before searches left schedules out have no "run". */
static bool is_reduced(const json_t *document)
{
    return result_number(document, "run") > 0 &&
           result_number(document, "run") < result_number(document, "schedules");
}

static void add_search_notes(const json_t *document, struct notes *notes)
{
    int64_t schedules = result_number(document, "schedules"), run = result_number(document, "run"),
            deadlocks = result_number(document, "deadlocks"), differed = result_number(document, "differed");
    char number[NUMBER_MAX];
    double seconds = json_number_value(json_object_get(document, "seconds")),
           coverage = json_number_value(json_object_get(document, "coverage"));
    notes_add(notes, NOTE_ADVICE,
              "%.3g schedules per second. A request that is silent for %" PRId64
              " ms counts as waiting in the program.",
              (double)(run > 0 ? run : schedules) / (seconds > 0 ? seconds : 1),
              result_number(document, "quiet_ms"));
    if (is_reduced(document))
        notes_add(notes, NOTE_ADVICE,
                  "%" PRId64
                  " of the %s schedules were run. Each of the others differs from one of them only in the "
                  "sequence of statements on different tables. --reduce none runs all.",
                  run, number_text((double)schedules, 0, number));
    const json_t *pool = json_object_get(document, "pool");
    int64_t clean = result_number(pool, "clean"), connections = result_number(pool, "connections");
    if (clean > 0 && result_number(pool, "shared") > 0)
        notes_add(notes, NOTE_ADVICE,
                  "Nothing was wrong in %" PRId64
                  " more schedules, in which the requests took turns on the last of %" PRId64
                  " connections of the pool.",
                  clean, connections);
    if (clean > 0 && result_number(pool, "shared") == 0)
        notes_add(notes, NOTE_ADVICE,
                  "When only one of the %" PRId64
                  " connections of the pool was free, the second request got it after the "
                  "first had ended: they never took turns on it.",
                  connections);
    if (deadlocks > 0)
        notes_add(notes, NOTE_ADVICE, "%" PRId64 " schedules had a deadlock, which PostgreSQL ended.",
                  deadlocks);
    if (differed > 0)
        notes_add(notes, NOTE_WARNING,
                  "%" PRId64 " repetition%s sent other statements than before, and ran again.", differed,
                  differed == 1 ? "" : "s");
    if (coverage < 1)
        notes_add(notes, NOTE_WARNING,
                  "%s left schedules out: %.3g %% of the tree of schedules was searched.",
                  json_is_true(json_object_get(document, "interrupted")) ? "The interrupt" : "A limit",
                  100 * coverage);
}

static void add_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows"),
                 *shown = json_object_get(document, "counterexample"), *warning;
    bool is_replay = *result_text(json_object_get(document, "settings"), "replay");
    size_t counts[VERDICT_COUNT], i;
    bool is_shown = shown && !json_is_null(shown) && !is_replay;
    if (is_shown && result_number(shown, "replays") == 0)
        notes_add(notes, NOTE_WITNESS, "%s was not replayed: %s", result_text(shown, "schedule"),
                  result_text(shown, "cause"));
    if (is_shown && result_number(shown, "replays") > 0)
        notes_add(notes, NOTE_WITNESS, "%s replayed %" PRId64 " of %" PRId64 " times: %s",
                  result_text(shown, "schedule"), result_number(shown, "reproduced"),
                  result_number(shown, "replays"), result_text(shown, "cause"));
    json_array_foreach(json_object_get(document, "warnings"), i, warning) {
        notes_add(notes, NOTE_WARNING, "%s", json_string_value(warning));
    }
    if (!is_replay)
        add_search_notes(document, notes);
    size_t failures = result_verdicts(rows, counts);
    if (is_replay)
        notes_add(notes, NOTE_CLOSING, failures ? "This schedule is NOT clean." : "This schedule is clean.");
    else if (failures == 0 && json_is_true(json_object_get(document, "complete")))
        notes_add(notes, NOTE_CLOSING, "Every schedule of %" PRId64 " requests is clean%s%s%s.",
                  result_number(json_object_get(document, "settings"), "requests"),
                  json_is_true(json_object_get(document, "polls_on"))
                      ? ", apart from those in which a request gives up waiting"
                      : "",
                  is_reduced(document) ? ", as far as the requests share nothing but PostgreSQL" : "",
                  result_number(document, "differed") > 0
                      ? ", as long as the requests send what they sent the first time"
                      : "");
    else
        notes_add(notes, NOTE_CLOSING,
                  counts[VERDICT_NOT_EXPLORED]
                      ? "Nothing wrong was found, and this search does NOT show that the service is clean."
                  : failures ? "The service is NOT clean."
                             : "Every schedule that was run is clean.");
}

const struct result_kind explore_own_result = {
    .name = "explore-own",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .notes = add_notes,
    .charts = explore_own_charts,
};
