/* Names anomalies by experiments. "X sees Y" in a step: without Y the step returns something else. "X misses Y": the step does not
 * see Y, although in the serial orders of the two it returns different things. From these follow the names:
 *   dirty read            X sees a transaction of Y that is still open
 *   non-repeatable read,  one step of X misses Y, and a later one sees it: the same SQL (phantom, if the number of rows changed),
 *   phantom, read skew    or another
 *   lost update           X misses Y, both change the same row, and the end is as without one of them
 *   write skew            X misses Y, Y misses X, and they change different rows
 * The definitions are those of Berenson and others, "A critique of ANSI SQL isolation levels", SIGMOD 1995. */
#include "loadtest/sqlspec/classify.h"

#include "base/text.h"
#include "loadtest/cli/complain.h"
#include "loadtest/sql/sql_signs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    bool is_anomaly;
} KINDS[FINDING_COUNT] = {
    [FINDING_DIRTY_READ] = {"dirty-read", true},
    [FINDING_LOST_UPDATE] = {"lost-update", true},
    [FINDING_WRITE_SKEW] = {"write-skew", true},
    [FINDING_PHANTOM] = {"phantom", true},
    [FINDING_NON_REPEATABLE_READ] = {"non-repeatable-read", true},
    [FINDING_READ_SKEW] = {"read-skew", true},
    [FINDING_NOT_SERIALIZABLE] = {"not-serializable", true},
    [FINDING_STUCK] = {"stuck", true},
    [FINDING_DEADLOCK] = {"deadlock", false},
    [FINDING_SERIALIZATION_FAILURE] = {"serialization-failure", false},
    [FINDING_LOCK_NOT_AVAILABLE] = {"lock-not-available", false},
    [FINDING_CONSTRAINT] = {"constraint", false},
    [FINDING_ERROR] = {"error", false},
    [FINDING_SERIAL] = {"serial", false},
};

const char *finding_name(enum finding_kind kind)
{
    return KINDS[kind].name;
}

bool finding_is_anomaly(enum finding_kind kind)
{
    return KINDS[kind].is_anomaly;
}

/* ---- experiments --------------------------------------------------------------------------------------- */

struct classifier {
    struct sql_execution *execution;
    struct serial *serial;
    const struct spec *spec;
    const size_t *steps; /* the schedule */
    size_t count;
    struct sql_outcome here; /* of the schedule, run once more */
    size_t position[SPEC_STEPS_MAX];
    uint32_t open[SPEC_STEPS_MAX]; /* by position: see struct sql_execution */
    size_t open_since[SPEC_STEPS_MAX][SPEC_SESSIONS_MAX];
    struct finding *finding;
};

static bool name_it(struct classifier *classifier, enum finding_kind kind, uint32_t sessions,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
static bool name_it(struct classifier *classifier, enum finding_kind kind, uint32_t sessions,
                    const char *format, ...)
{
    va_list arguments;
    classifier->finding->kind = kind;
    classifier->finding->sessions = sessions;
    va_start(arguments, format);
    (void)vsnprintf(classifier->finding->text, sizeof classifier->finding->text, format, arguments);
    va_end(arguments);
    text_mend(classifier->finding->text);
    return true;
}

static const char *session_name(const struct classifier *classifier, size_t session)
{
    return classifier->spec->sessions[session].name;
}

static const char *step_name(const struct classifier *classifier, size_t step)
{
    return classifier->spec->steps[step].name;
}

static const json_t *results_of(const struct classifier *classifier, const struct sql_outcome *outcome,
                                size_t step)
{
    return json_object_get(outcome->sessions[classifier->spec->steps[step].session],
                           step_name(classifier, step));
}

static bool same(const struct classifier *classifier, const json_t *one, const json_t *other)
{
    return sql_results_equal(&classifier->execution->sequences.numbers, one, other);
}

static bool same_tables(const struct classifier *classifier, const struct sql_outcome *other)
{
    return sql_tables_equal(&classifier->execution->sequences.numbers, classifier->here.tables,
                            other->tables);
}

static bool returns_rows(const json_t *results)
{
    size_t i;
    json_t *result;
    json_array_foreach(results, i, result) {
        if (json_object_get(result, "rows"))
            return true;
    }
    return false;
}

static size_t count_rows(const json_t *results)
{
    size_t i, rows = 0;
    json_t *result;
    json_array_foreach(results, i, result) {
        rows += json_array_size(json_object_get(result, "rows"));
    }
    return rows;
}

/* Runs the schedule without the steps of sessions that are not in SESSIONS. */
static bool run_with(struct classifier *classifier, uint32_t sessions, struct sql_outcome *ret_outcome)
{
    bool skip[SPEC_STEPS_MAX] = {false};
    for (size_t i = 0; i < classifier->count; i++)
        skip[classifier->steps[i]] = !(sessions &
                                       1u << classifier->spec->steps[classifier->steps[i]].session);
    return sql_execution_run_steps(classifier->execution, classifier->steps, classifier->count, skip,
                                   ret_outcome);
}

/* What the experiments with two sessions showed. */
struct pair {
    size_t x, y;
    uint32_t all; /* the sessions of the schedule that were not aborted */
    struct sql_outcome without_y;
    const struct serial_outcome *xy, *yx;
    size_t misses, sees; /* steps of x that return rows; NO_STEP: none */
    size_t misses_pair,
        sees_pair; /* two steps with the same SQL, the first one misses y, the second one sees it */
    size_t inside; /* a step of x with several results: one misses y, and a later one sees it; NO_STEP */
};

static bool sees_inside(const struct classifier *classifier, const struct pair *pair, size_t step)
{
    const json_t *here = results_of(classifier, &classifier->here, step),
                 *without = results_of(classifier, &pair->without_y, step),
                 *xy = results_of(classifier, &pair->xy->outcome, step),
                 *yx = results_of(classifier, &pair->yx->outcome, step);
    bool misses = false;
    for (size_t i = 0; i < json_array_size(here); i++) {
        const json_t *result = json_array_get(here, i);
        bool is_same = same(classifier, result, json_array_get(without, i));
        if (!is_same && misses)
            return true;
        misses |= is_same && json_object_get(result, "rows") &&
                  !same(classifier, json_array_get(xy, i), json_array_get(yx, i));
    }
    return false;
}

static void look_at_step(const struct classifier *classifier, struct pair *pair, size_t step)
{
    const json_t *here = results_of(classifier, &classifier->here, step);
    bool sees = !same(classifier, here, results_of(classifier, &pair->without_y, step));
    bool depends = !same(classifier, results_of(classifier, &pair->xy->outcome, step),
                         results_of(classifier, &pair->yx->outcome, step));
    if (sees && pair->sees == NO_STEP && (returns_rows(here) || pair->misses != NO_STEP))
        pair->sees = step;
    if (!sees && depends && returns_rows(here) && pair->misses == NO_STEP)
        pair->misses = step;
    if (pair->inside == NO_STEP && sees_inside(classifier, pair, step))
        pair->inside = step;
}

/* Two steps of x with the same SQL, of which one misses y and one sees it. */
static void look_for_repeated(const struct classifier *classifier, struct pair *pair)
{
    const struct spec_session *x = &classifier->spec->sessions[pair->x];
    pair->misses_pair = pair->sees_pair = NO_STEP;
    for (size_t i = 0; i < x->step_count; i++)
        for (size_t n = i + 1; n < x->step_count; n++) {
            size_t one = x->steps[i], other = x->steps[n];
            const json_t *first = results_of(classifier, &classifier->here, one);
            if (strcmp(classifier->spec->steps[one].block.sql, classifier->spec->steps[other].block.sql) ==
                    0 &&
                returns_rows(first) &&
                same(classifier, first, results_of(classifier, &pair->without_y, one)) &&
                !same(classifier, results_of(classifier, &classifier->here, other),
                      results_of(classifier, &pair->without_y, other))) {
                pair->misses_pair = one;
                pair->sees_pair = other;
                return;
            }
        }
}

static bool look_at_pair(struct classifier *classifier, struct pair *pair)
{
    const struct spec_session *x = &classifier->spec->sessions[pair->x];
    const uint8_t xy[] = {(uint8_t)pair->x, (uint8_t)pair->y}, yx[] = {xy[1], xy[0]};
    pair->misses = pair->sees = pair->inside = NO_STEP;
    pair->xy = serial_run(classifier->serial, classifier->execution, xy, 2);
    pair->yx = serial_run(classifier->serial, classifier->execution, yx, 2);
    if (!pair->xy || !pair->yx || !run_with(classifier, pair->all & ~(1u << pair->y), &pair->without_y))
        return false;
    for (size_t i = 0; i < x->step_count; i++)
        look_at_step(classifier, pair, x->steps[i]);
    look_for_repeated(classifier, pair);
    return true;
}

/* ---- dirty reads --------------------------------------------------------------------------------------- */

/* A session can read what another one has not committed: not on PostgreSQL, and on MariaDB at READ UNCOMMITTED only, which the specification then
 * names. */
static bool can_be_dirty(const struct classifier *classifier)
{
    const struct spec *spec = classifier->spec;
    bool is_named = false;
    for (size_t i = 0; i < spec->session_count; i++)
        is_named |= spec->sessions[i].setup.sql && strcasestr(spec->sessions[i].setup.sql, "UNCOMMITTED");
    for (size_t i = 0; i < spec->step_count; i++)
        is_named |= strcasestr(spec->steps[i].block.sql, "UNCOMMITTED") != NULL;
    for (size_t i = 0; i < spec->setup_count; i++)
        is_named |= strcasestr(spec->setups[i].sql, "UNCOMMITTED") != NULL;
    return is_named && classifier->execution->connections->control->driver->ends_silently;
}

/* Does STEP of x see what y has not committed? *ret_dirty. */
static bool look_for_dirty_read(struct classifier *classifier, const struct pair *pair, size_t step,
                                bool *ret_dirty)
{
    size_t at = classifier->position[step];
    bool skip[SPEC_STEPS_MAX] = {false};
    struct sql_outcome outcome = {0};
    *ret_dirty = false;
    if (at == NO_STEP || !(classifier->open[at] & 1u << pair->y) ||
        same(classifier, results_of(classifier, &classifier->here, step),
             results_of(classifier, &pair->without_y, step)))
        return true;
    for (size_t i = 0; i < classifier->count; i++)
        skip[classifier->steps[i]] = classifier->spec->steps[classifier->steps[i]].session == pair->y &&
                                     i >= classifier->open_since[at][pair->y];
    if (!sql_execution_run_steps(classifier->execution, classifier->steps, classifier->count, skip, &outcome))
        return false;
    *ret_dirty = !same(classifier, results_of(classifier, &classifier->here, step),
                       results_of(classifier, &outcome, step));
    sql_outcome_free(&outcome);
    return true;
}

static bool classify_dirty_read(struct classifier *classifier, const struct pair *pair, bool *ret_named)
{
    const struct spec_session *x = &classifier->spec->sessions[pair->x];
    for (size_t i = 0; can_be_dirty(classifier) && i < x->step_count && !*ret_named; i++) {
        size_t step = x->steps[i];
        /* A step that waited for the end of y's transaction does not see it open. */
        if (!returns_rows(results_of(classifier, &classifier->here, step)))
            continue;
        if (!look_for_dirty_read(classifier, pair, step, ret_named))
            return false;
        if (*ret_named)
            (void)name_it(classifier, FINDING_DIRTY_READ, 1u << pair->x | 1u << pair->y,
                          "Step %s of %s returns what %s has written and not committed.",
                          step_name(classifier, step), session_name(classifier, pair->x),
                          session_name(classifier, pair->y));
    }
    return true;
}

/* ---- writes -------------------------------------------------------------------------------------------- */

static bool has_row(const json_t *tables, const json_t *row)
{
    size_t i;
    json_t *candidate;
    json_array_foreach(tables, i, candidate) {
        if (json_equal(row, candidate))
            return true;
    }
    return false;
}

static size_t count_table(const json_t *tables, const char *table)
{
    size_t i, count = 0;
    json_t *row;
    json_array_foreach(tables, i, row) {
        count += strcmp(json_string_value(json_array_get(row, 0)), table) == 0;
    }
    return count;
}

/* The tables in the schedule, without any session, and with one of the two alone. */
struct ends {
    const json_t *here, *none, *only_x, *only_y;
};

/* The table of a row that each of the two changes alone, and both change in the schedule. There, an insert in the place of the change would make
 * the table longer. NULL: there is none. */
static const char *find_common_change(const struct ends *ends)
{
    size_t i;
    json_t *row;
    json_array_foreach(ends->none, i, row) {
        const char *table = json_string_value(json_array_get(row, 0));
        if (!has_row(ends->only_x, row) && !has_row(ends->only_y, row) && !has_row(ends->here, row) &&
            count_table(ends->here, table) + count_table(ends->none, table) ==
                count_table(ends->only_x, table) + count_table(ends->only_y, table))
            return table;
    }
    return NULL;
}

/* Is a row of TABLE in the schedule as the session makes it that runs ALONE? */
static bool has_version(const struct ends *ends, const json_t *alone, const char *table)
{
    size_t i;
    json_t *row;
    json_array_foreach(alone, i, row) {
        if (strcmp(json_string_value(json_array_get(row, 0)), table) == 0 && !has_row(ends->none, row) &&
            has_row(ends->here, row))
            return true;
    }
    return false;
}

/* Does the last step of x come after the last one of y? */
static bool ends_later(const struct classifier *classifier, size_t x, size_t y)
{
    bool later = false;
    for (size_t i = 0; i < classifier->count; i++) {
        size_t session = classifier->spec->steps[classifier->steps[i]].session;
        if (session == x || session == y)
            later = session == x;
    }
    return later;
}

/* "UPDATE 1", "INSERT 0 2", "1 row changed". -1: another command. */
static long count_changed(const char *command)
{
    static const char *const WRITES[] = {"INSERT 0 ", "UPDATE ", "DELETE ", "MERGE "};
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++)
        if (strncmp(command, WRITES[i], strlen(WRITES[i])) == 0)
            return strtol(command + strlen(WRITES[i]), NULL, 10);
    return (strstr(command, " rows changed") || strstr(command, " row changed")) ? strtol(command, NULL, 10)
                                                                                 : -1;
}

/* Did the session's writes change no row in this schedule, as an UPDATE with SKIP LOCKED that finds none? Then no update of it can be lost. */
static bool changed_nothing(const struct classifier *classifier, size_t session)
{
    const struct spec_session *of = &classifier->spec->sessions[session];
    bool tried = false;
    for (size_t i = 0; i < of->step_count; i++) {
        const char *sql = classifier->spec->steps[of->steps[i]].block.sql;
        const json_t *result;
        size_t n;
        json_array_foreach(results_of(classifier, &classifier->here, of->steps[i]), n, result) {
            const char *command = json_string_value(json_object_get(result, "command"));
            const json_t *rows = json_object_get(result, "rows");
            long changed = command ? count_changed(command) : -1;
            if (rows && strncasecmp(sql_skip_blank(sql), "SELECT", 6) != 0)
                changed = (long)json_array_size(rows); /* RETURNING */
            if (changed > 0)
                return false;
            tried |= changed == 0;
        }
    }
    return tried;
}

static bool classify_writes(struct classifier *classifier, const struct pair *pair, const struct pair *back,
                            bool *ret_named)
{
    const uint8_t x[] = {(uint8_t)pair->x}, y[] = {(uint8_t)pair->y};
    uint32_t both = 1u << pair->x | 1u << pair->y;
    const char *first = session_name(classifier, pair->x), *second = session_name(classifier, pair->y);
    const struct serial_outcome *found, *none = serial_run(classifier->serial, classifier->execution, x, 0),
                                        *only_x = serial_run(classifier->serial, classifier->execution, x, 1),
                                        *only_y = serial_run(classifier->serial, classifier->execution, y, 1);
    if (!none || !only_x || !only_y ||
        !serial_find_tables(classifier->serial, classifier->execution, pair->all, classifier->here.tables,
                            &found))
        return false;
    const struct ends ends = {classifier->here.tables, none->outcome.tables, only_x->outcome.tables,
                              only_y->outcome.tables};
    bool both_change = !changed_nothing(classifier, pair->x) && !changed_nothing(classifier, pair->y);
    const char *table = both_change ? find_common_change(&ends) : NULL;
    bool knows_nothing = pair->misses == NO_STEP, is_x = same_tables(classifier, &only_x->outcome),
         is_y = same_tables(classifier, &only_y->outcome), is_one = is_x || is_y,
         has_x = is_x || (table && has_version(&ends, ends.only_x, table)),
         has_y = is_y || (table && has_version(&ends, ends.only_y, table));
    /* Where one of them writes without having read, the end alone can show that something was lost. */
    if (table && (found ? is_one && !knows_nothing : is_one || (!knows_nothing && (has_x || has_y)))) {
        bool keeps_x = has_x && has_y ? ends_later(classifier, pair->x, pair->y) : has_x;
        const char *lost = keeps_x ? second : first, *kept = keeps_x ? first : second;
        *ret_named = name_it(
            classifier, FINDING_LOST_UPDATE, both,
            "%s and %s change the same row of %s. %s wrote without having seen what %s wrote, so the "
            "update of %s is lost.",
            first, second, table, kept, lost, lost);
    } else if (table && !knows_nothing && ends_later(classifier, pair->x, pair->y)) {
        *ret_named = name_it(
            classifier, FINDING_NON_REPEATABLE_READ, both,
            "Step %s of %s returns a row of %s as it was before %s changed it. %s then changes the row "
            "that %s has written.",
            step_name(classifier, pair->misses), first, table, second, first, second);
    } else if (!table && !knows_nothing && back->misses != NO_STEP && is_one) {
        *ret_named = name_it(
            classifier, FINDING_READ_SKEW, both,
            "Step %s of %s returns the state before %s, and a later step acts on the state after it.",
            step_name(classifier, is_x ? back->misses : pair->misses), is_x ? second : first,
            is_x ? first : second);
    } else if (!table && both_change && !knows_nothing && back->misses != NO_STEP) {
        *ret_named = name_it(
            classifier, FINDING_WRITE_SKEW, both,
            "Step %s of %s does not see what %s writes, and step %s of %s does not see what %s writes. "
            "They change different rows, so neither notices the other.",
            step_name(classifier, pair->misses), first, second, step_name(classifier, back->misses), second,
            first);
    }
    return true;
}

/* ---- reads --------------------------------------------------------------------------------------------- */

static bool classify_reads(struct classifier *classifier, const struct pair *pair)
{
    const char *x = session_name(classifier, pair->x), *y = session_name(classifier, pair->y);
    uint32_t both = 1u << pair->x | 1u << pair->y;
    if (pair->misses_pair != NO_STEP) {
        const json_t *first = results_of(classifier, &classifier->here, pair->misses_pair),
                     *second = results_of(classifier, &classifier->here, pair->sees_pair);
        bool is_phantom = count_rows(first) != count_rows(second);
        return name_it(
            classifier, is_phantom ? FINDING_PHANTOM : FINDING_NON_REPEATABLE_READ, both,
            "Steps %s and %s of %s are the same SQL and return different %s, because %s wrote between them.",
            step_name(classifier, pair->misses_pair), step_name(classifier, pair->sees_pair), x,
            is_phantom ? "rows" : "values", y);
    }
    if (pair->inside != NO_STEP)
        return name_it(
            classifier, FINDING_NON_REPEATABLE_READ, both,
            "Step %s of %s reads more than once. Its first result is the state before %s, and a later one "
            "the state after it.",
            step_name(classifier, pair->inside), x, y);
    if (pair->misses == NO_STEP || pair->sees == NO_STEP ||
        !returns_rows(results_of(classifier, &classifier->here, pair->sees)))
        return false;
    return name_it(classifier, FINDING_READ_SKEW, both,
                   "Step %s of %s returns the state before %s, and step %s the state after it.",
                   step_name(classifier, pair->misses), x, y, step_name(classifier, pair->sees));
}

/* ---- putting it together ------------------------------------------------------------------------------- */

static bool classify_pair(struct classifier *classifier, size_t x, size_t y, uint32_t all, bool *ret_named)
{
    struct pair pair = {.x = x, .y = y, .all = all}, back = {.x = y, .y = x, .all = all};
    bool ok = look_at_pair(classifier, &pair) && look_at_pair(classifier, &back) &&
              classify_dirty_read(classifier, &pair, ret_named) &&
              (*ret_named || classify_dirty_read(classifier, &back, ret_named));
    if (ok && !*ret_named)
        *ret_named = classify_reads(classifier, &pair) || classify_reads(classifier, &back);
    if (ok && !*ret_named)
        ok = classify_writes(classifier, &pair, &back, ret_named) &&
             (*ret_named || classify_writes(classifier, &back, &pair, ret_named));
    sql_outcome_free(&pair.without_y);
    sql_outcome_free(&back.without_y);
    return ok;
}

/* Adds where the outcome differs from the serial execution that is nearest to it. */
static void add_difference(struct classifier *classifier, uint32_t sessions)
{
    const struct serial_outcome *nearest = NULL;
    struct difference difference, first = {.where = ""};
    size_t fewest = SIZE_MAX, used = strlen(classifier->finding->text);
    char names[300] = "";
    for (size_t i = 0; i < classifier->serial->count; i++) {
        const struct serial_outcome *item = &classifier->serial->item[i];
        uint32_t has = 0;
        for (size_t n = 0; n < item->count; n++)
            has |= 1u << item->order[n];
        size_t differences = has != sessions
                                 ? SIZE_MAX
                                 : sql_outcome_difference(classifier->execution, &classifier->here,
                                                          &item->outcome, &difference);
        if (differences < fewest) {
            fewest = differences;
            first = difference;
            nearest = item;
        }
    }
    if (!nearest || !first.where[0])
        return;
    for (size_t n = 0, length = 0; n < nearest->count && length < sizeof names; n++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%.50s", n ? " " : "",
                                   session_name(classifier, nearest->order[n]));
    (void)snprintf(classifier->finding->text + used, sizeof classifier->finding->text - used,
                   " In %s: %s here, and %s in the serial execution %s.", first.where, first.one, first.other,
                   names);
    text_mend(classifier->finding->text);
}

static bool classify_anomaly(struct classifier *classifier, uint32_t sessions)
{
    struct sql_execution *execution = classifier->execution;
    bool named = false;
    if (!run_with(classifier, UINT32_MAX, &classifier->here))
        return false;
    for (size_t i = 0; i < SPEC_STEPS_MAX; i++)
        classifier->position[i] = NO_STEP;
    for (size_t i = 0; i < execution->length; i++)
        classifier->position[execution->started[i]] = i;
    memcpy(classifier->open, execution->open, sizeof classifier->open);
    memcpy(classifier->open_since, execution->open_since, sizeof classifier->open_since);
    for (size_t x = 0; x < classifier->spec->session_count && !named; x++)
        for (size_t y = x + 1; y < classifier->spec->session_count && !named; y++)
            if (sessions & 1u << x && sessions & 1u << y &&
                !classify_pair(classifier, x, y, sessions, &named))
                return false;
    if (!named)
        (void)name_it(classifier, FINDING_NOT_SERIALIZABLE, sessions,
                      "No serial execution of the sessions gives this outcome.");
    add_difference(classifier, sessions);
    return true;
}

static bool classify_aborted(struct classifier *classifier, const struct sql_outcome *outcome)
{
    enum finding_kind kind = FINDING_ERROR;
    const char *what = "An error ended a transaction, so nothing of it remains";
    if (strcmp(outcome->code, "40P01") == 0) {
        kind = FINDING_DEADLOCK;
        what = "The sessions waited for each other, and the server ended one of the transactions";
    } else if (strncmp(outcome->code, "40", 2) == 0) {
        kind = FINDING_SERIALIZATION_FAILURE;
        what = "The server ended a transaction that it could not serialize";
    } else if (strcmp(outcome->code, "55P03") == 0 || strcmp(outcome->code, "57014") == 0) {
        kind = FINDING_LOCK_NOT_AVAILABLE;
        what = "A statement gave up its wait for a lock";
    } else if (strncmp(outcome->code, "23", 2) == 0 || strcmp(outcome->code, "P0001") == 0) {
        kind = FINDING_CONSTRAINT;
        what = "A constraint or an exception ended a transaction, so nothing of it remains";
    }
    bool may_fail_again = kind == FINDING_ERROR || kind == FINDING_CONSTRAINT;
    return name_it(classifier, kind, outcome->aborted,
                   "%s. The other sessions have the outcome of a serial execution. The program must %s.",
                   what, may_fail_again ? "handle this error" : "run the transaction again");
}

bool classify(struct sql_execution *execution, struct serial *serial, const size_t *steps, size_t count,
              const struct sql_outcome *outcome, struct finding *ret_finding)
{
    struct classifier *classifier = calloc(1, sizeof *classifier);
    uint32_t all = (uint32_t)((UINT64_C(1) << execution->connections->spec->session_count) - 1);
    const struct serial_outcome *found = NULL;
    *ret_finding = (struct finding){0};
    char *text = sql_outcome_text(outcome, all), *rest = sql_outcome_text(outcome, all & ~outcome->aborted);
    if (!classifier || !text || !rest) {
        complain("out of memory");
        free(classifier);
        free(text);
        free(rest);
        return false;
    }
    *classifier = (struct classifier){.execution = execution,
                                      .serial = serial,
                                      .spec = execution->connections->spec,
                                      .steps = steps,
                                      .count = count,
                                      .finding = ret_finding};
    bool ok = true;
    if (outcome->stuck) {
        (void)name_it(classifier, FINDING_STUCK, 0, "%s. No session has a step left that releases it.",
                      outcome->waits);
    } else if ((ok = serial_find(serial, execution, all, text, &found)) && found) {
        (void)name_it(classifier, FINDING_SERIAL, 0, "The same as in a serial execution.");
    } else if (ok && outcome->aborted &&
               (ok = serial_find(serial, execution, all & ~outcome->aborted, rest, &found)) && found) {
        (void)classify_aborted(classifier, outcome);
    } else if (ok) {
        ok = classify_anomaly(classifier, all & ~outcome->aborted);
    }
    sql_outcome_free(&classifier->here);
    free(classifier);
    free(text);
    free(rest);
    return ok;
}
