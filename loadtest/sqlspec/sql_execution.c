/* Runs a specification under the control of a search. After a step is started, the execution waits until every session is idle or
 * blocked by another one, as the server says; so nothing depends on time. */
#include "loadtest/sqlspec/sql_execution.h"

#include "base/clock.h"
#include "base/hash.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/search/waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CONTROL_US = 10000000, ASK_AFTER_MS = 1, SAY_US = 5000000 };

static bool fail(struct sql_execution *execution)
{
    execution->failed = true;
    return false;
}

/* ---- results -------------------------------------------------------------------------------------------- */

/* The results to compare. Notifications may come earlier or later, and carry numbers of processes: they are no part of an outcome. */
static json_t *comparable(const json_t *results, bool has_sequence)
{
    json_t *kept = json_array(), *result;
    size_t i;
    json_array_foreach(results, i, result) {
        if (json_object_get(result, "notification"))
            continue;
        json_t *copy = json_deep_copy(result);
        if (!has_sequence && json_object_get(copy, "rows")) {
            numbers_sort(json_object_get(copy, "rows"));
            (void)json_object_set_new(copy, "unordered", json_true()); /* for numbers.h */
        }
        if (json_array_append_new(kept, copy) != 0)
            break;
    }
    return kept;
}

/* SQL of the step NAME; of the session's teardown if that is "". */
static const char *sql_of(const struct sql_execution *execution, size_t session, const char *name)
{
    const struct spec *spec = execution->connections->spec;
    for (size_t i = 0; i < spec->step_count; i++)
        if (*name && strcmp(spec->steps[i].name, name) == 0)
            return spec->steps[i].block.sql;
    const char *sql = spec->sessions[session].teardown.sql;
    return sql ? sql : "";
}

static bool keep_results(struct sql_execution *execution, size_t session, const char *name)
{
    struct session *on = execution->connections->sessions[session];
    json_t *results = comparable(on->results,
                                 strcasestr(sql_of(execution, session, name), "ORDER BY") != NULL);
    const char *code = results_error_code(results);
    /* On PostgreSQL every error ends the transaction. On MariaDB only a deadlock and a changed record (error 1020) do: other errors end the
     * statement, and the program goes on. */
    bool ends_silently = on->driver->ends_silently;
    if (ends_silently ? strncmp(code, "40", 2) == 0 : code[0] != '\0') {
        execution->outcome.aborted |= 1u << session;
        if (ends_silently)
            execution->given_up |= 1u << session;
        if (!execution->outcome.code[0])
            (void)snprintf(execution->outcome.code, sizeof execution->outcome.code, "%.5s", code);
    }
    execution->has_deadlock |= strcmp(code, "40P01") == 0;
    json_auto_t *renamed = results ? numbers_canonical(&execution->sequences.numbers, results) : NULL;
    char *text = renamed ? json_dumps(renamed, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    /* Steps that end between two starts of steps may do so in any sequence. */
    if (text)
        execution->new_results += hash_add(session + 1, text, strlen(text));
    free(text);
    if (!execution->outcome.sessions[session])
        execution->outcome.sessions[session] = json_object();
    if (text && json_object_set_new(execution->outcome.sessions[session], name, results) == 0)
        return true;
    complain("out of memory");
    return fail(execution);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

void sql_execution_open(struct sql_execution *execution, struct connections *connections)
{
    *execution = (struct sql_execution){.connections = connections};
}

static void forget(struct sql_execution *execution)
{
    sql_outcome_free(&execution->outcome);
    execution->length = 0;
    execution->failed = false;
    execution->new_results = 0;
    execution->has_deadlock = false;
    execution->given_up = 0;
    execution->fingerprint = HASH_OF_NOTHING;
    for (size_t i = 0; i < SPEC_SESSIONS_MAX; i++) {
        execution->running[i] = NO_STEP;
        execution->began_at[i] = SIZE_MAX;
        execution->holders[i] = 0;
    }
}

void sql_execution_close(struct sql_execution *execution)
{
    forget(execution);
    step_inside_free(&execution->inside);
    sequences_free(&execution->sequences);
    sql_execution_forget_tables(execution);
}

void sql_execution_forget_tables(struct sql_execution *execution)
{
    json_decref(execution->columns);
    execution->columns = NULL;
    free(execution->tables_sql);
    execution->tables_sql = NULL;
    execution->tables_known = false;
}

static bool is_in_transaction(const struct sql_execution *execution, size_t session)
{
    const struct session *on = execution->connections->sessions[session];
    return on->driver->transaction(on) != TRANSACTION_NONE;
}

/* Notes where transactions began and ended. */
static void look_at_transactions(struct sql_execution *execution)
{
    for (size_t i = 0; i < execution->connections->spec->session_count; i++)
        if (execution->running[i] == NO_STEP) {
            if (!is_in_transaction(execution, i))
                execution->began_at[i] = SIZE_MAX;
            else if (execution->began_at[i] == SIZE_MAX)
                execution->began_at[i] = execution->length ? execution->length - 1 : 0;
        }
}

/* What is newer than this, the setup has made. */
static bool note_newest(struct sql_execution *execution)
{
    struct session *control = execution->connections->control;
    if (execution->tables_known || !control->driver->before_setup_sql ||
        session_run(control, control->driver->before_setup_sql, monotonic_us() + CONTROL_US))
        return true;
    if (!interrupted())
        complain("cannot ask for the tables: %s", control->error);
    return false;
}

bool sql_execution_begin(struct sql_execution *execution, bool sessions)
{
    struct connections *connections = execution->connections;
    forget(execution);
    if (!note_newest(execution) || !sequences_before_setup(&execution->sequences, connections->control) ||
        !connections_set_up(connections))
        return fail(execution);
    execution->began = true;
    if (!sequences_after_setup(&execution->sequences, connections->control))
        return fail(execution);
    for (size_t i = 0; sessions && i < connections->spec->session_count; i++)
        if (!connections_set_up_session(connections, i))
            return fail(execution);
    look_at_transactions(execution);
    return true;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

/* Of the step at POSITION, which has just ended: whose transactions are open. */
static void note_open_transactions(struct sql_execution *execution, size_t position)
{
    for (size_t i = 0; i < execution->connections->spec->session_count; i++) {
        execution->open_since[position][i] = execution->began_at[i];
        if (execution->began_at[i] != SIZE_MAX)
            execution->open[position] |= 1u << i;
    }
}

/* As a program would, which begins again later. */
static void roll_back_given_up(struct sql_execution *execution)
{
    struct connections *connections = execution->connections;
    for (size_t i = 0; i < connections->spec->session_count; i++)
        if (execution->given_up & 1u << i && execution->running[i] == NO_STEP &&
            is_in_transaction(execution, i))
            (void)session_run(connections->sessions[i], "ROLLBACK", monotonic_us() + CONTROL_US);
}

/* The server has ended the connection, or we did, because we cannot take what the step returns. */
static void complain_of_loss(const struct connections *connections, size_t session, size_t step)
{
    const struct session *on = connections->sessions[session];
    const struct spec_step *of = &connections->spec->steps[step];
    complain(results_error(on->results) ? "%s:%d: the session lost its connection in step %s: %s"
                                        : "%s:%d: step %s cannot run: %s",
             connections->path, of->block.line, of->name, on->error);
}

/* Takes the results of the steps that have ended. Returns how many did. */
static size_t collect(struct sql_execution *execution)
{
    struct connections *connections = execution->connections;
    size_t ended = 0, positions[SPEC_SESSIONS_MAX];
    for (size_t i = 0; i < connections->spec->session_count && !execution->failed; i++) {
        struct session *on = connections->sessions[i];
        size_t step = execution->running[i];
        if (step == NO_STEP || on->driver->pump(on) == SESSION_BUSY)
            continue;
        if (on->state == SESSION_LOST) {
            complain_of_loss(connections, i, step);
            (void)fail(execution);
            break;
        }
        execution->running[i] = NO_STEP;
        execution->holders[i] = 0;
        positions[ended++] = execution->position[i];
        (void)keep_results(execution, i, connections->spec->steps[step].name);
    }
    if (ended > 0)
        roll_back_given_up(execution);
    look_at_transactions(execution);
    for (size_t i = 0; i < ended; i++)
        note_open_transactions(execution, positions[i]);
    return ended;
}

/* Is every session idle, or blocked by another one that does not wait for it? */
static bool is_settled(struct sql_execution *execution)
{
    size_t count = execution->connections->spec->session_count;
    for (size_t i = 0; i < count; i++)
        if (execution->running[i] != NO_STEP && execution->holders[i] == 0)
            return false;
    /* The server ends one of the waits of a circle. */
    return !waits_have_circle(execution->holders, count);
}

static size_t count_running(const struct sql_execution *execution)
{
    size_t running = 0;
    for (size_t i = 0; i < execution->connections->spec->session_count; i++)
        running += execution->running[i] != NO_STEP;
    return running;
}

/* The first step that runs and is not blocked. */
static size_t find_slow_step(const struct sql_execution *execution)
{
    size_t found = NO_STEP;
    for (size_t i = 0; i < execution->connections->spec->session_count; i++)
        if (execution->running[i] != NO_STEP && (found == NO_STEP || !execution->holders[i]))
            found = execution->running[i];
    return found;
}

/* Waits until all is settled. Two answers of the server have to agree, since it looks at one session after the other. */
static bool settle(struct sql_execution *execution)
{
    struct connections *connections = execution->connections;
    const struct spec *spec = connections->spec;
    int64_t deadline_us = monotonic_us() + connections->step_us;
    uint32_t before[SPEC_SESSIONS_MAX] = {0};
    int64_t say_us = monotonic_us() + SAY_US;
    (void)collect(execution);
    while (!execution->failed && count_running(execution) > 0) {
        session_poll(connections->sessions, spec->session_count, ASK_AFTER_MS);
        if (collect(execution) > 0 || execution->failed)
            continue;
        if (!connections_waits(connections, execution->holders))
            return fail(execution);
        if (collect(execution) > 0 || execution->failed)
            continue;
        bool same = memcmp(before, execution->holders, sizeof before) == 0;
        memcpy(before, execution->holders, sizeof before);
        if (is_settled(execution) && (same || count_running(execution) == 1))
            break;
        if (interrupted())
            return fail(execution);
        if (monotonic_us() >= say_us && !execution->said) {
            const struct spec_step *step = &spec->steps[find_slow_step(execution)];
            complain(
                "%s:%d: step %s still runs after %d s, and no session of the file blocks it. The command cancels it "
                "after %" PRId64 " ms (--step-time)",
                connections->path, step->block.line, step->name, SAY_US / 1000000,
                connections->step_us / 1000);
            execution->said = true;
        }
        if (monotonic_us() >= deadline_us) {
            const struct spec_step *step = &spec->steps[find_slow_step(execution)];
            complain("%s:%d: step %s did not end within %" PRId64
                     " ms, and no other session blocks it. Shorten it, or use a longer --step-time",
                     connections->path, step->block.line, step->name, connections->step_us / 1000);
            return fail(execution);
        }
    }
    uint64_t news = execution->new_results;
    execution->new_results = 0;
    if (!execution->has_deadlock) {
        execution->fingerprint = hash_add_number(execution->fingerprint, news);
        execution->fingerprint = hash_add(execution->fingerprint, execution->holders,
                                          sizeof execution->holders);
    }
    return !execution->failed;
}

bool sql_execution_step(struct sql_execution *execution, size_t step)
{
    struct connections *connections = execution->connections;
    size_t session = connections->spec->steps[step].session, number = execution->length;
    if (execution->failed || number == SPEC_STEPS_MAX)
        return fail(execution);
    if (!step_inside_note(&execution->inside, connections->spec, connections->control, step,
                          is_in_transaction(execution, session), execution->started, execution->length))
        return fail(execution);
    execution->position[session] = number;
    execution->open[number] = 0;
    execution->started[execution->length++] = step;
    execution->running[session] = step;
    if (!connections_start(connections, step))
        return fail(execution);
    return settle(execution);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* The first session that waits tells for what. */
static void note_stuck(struct sql_execution *execution, size_t session)
{
    struct connections *connections = execution->connections;
    struct sql_outcome *outcome = &execution->outcome;
    const struct spec_step *step = &connections->spec->steps[execution->running[session]];
    char lock[LOCK_TEXT_SIZE];
    if (!outcome->stuck) {
        connections_describe_wait(connections, session, execution->holders[session], lock);
        (void)snprintf(outcome->waits, sizeof outcome->waits, "Step %.60s of %.60s waits for %s", step->name,
                       connections->spec->sessions[session].name, lock);
    }
    outcome->stuck = true;
}

/* Sessions still wait, and those that they wait for have no step left: ends the waits. */
static bool end_waits(struct sql_execution *execution)
{
    struct connections *connections = execution->connections;
    for (size_t i = 0; i < connections->spec->session_count; i++)
        if (execution->running[i] != NO_STEP) {
            note_stuck(execution, i);
            connections->sessions[i]->driver->cancel(connections->sessions[i]);
            (void)session_wait(connections->sessions[i], monotonic_us() + CONTROL_US);
        }
    (void)collect(execution);
    return !execution->failed;
}

/* A COMMIT in a teardown can fail like one in a step, so its results belong to the outcome. */
static bool tear_down_session(struct sql_execution *execution, size_t session)
{
    struct connections *connections = execution->connections;
    struct session *on = connections->sessions[session];
    const char *sql = connections->spec->sessions[session].teardown.sql;
    if (sql && !(execution->given_up & 1u << session)) {
        char what[100];
        (void)snprintf(what, sizeof what, "the teardown of session %.60s",
                       connections->spec->sessions[session].name);
        if (on->driver->start(on, sql) &&
            !connections_await(connections, on, connections->spec->sessions[session].teardown.line, what) &&
            on->state == SESSION_IDLE)
            return fail(execution);
        if (!keep_results(execution, session, ""))
            return false;
    }
    return connections_roll_back(connections, session) || fail(execution);
}

static bool finish(struct sql_execution *execution, struct sql_outcome *ret_outcome)
{
    /* Locks that sessions have left would keep us from the tables. */
    if (!connections_reset(execution->connections) || !execution_read_tables(execution) ||
        !connections_check_invariants(execution->connections, &execution->outcome.broken))
        return fail(execution);
    execution->began = false;
    connections_tear_down(execution->connections);
    execution->outcome.numbers = &execution->sequences.numbers;
    *ret_outcome = execution->outcome;
    execution->outcome = (struct sql_outcome){0};
    return true;
}

bool sql_execution_end(struct sql_execution *execution, struct sql_outcome *ret_outcome)
{
    if (execution->failed || !end_waits(execution))
        return false;
    for (size_t i = 0; i < execution->connections->spec->session_count; i++)
        if (!tear_down_session(execution, i))
            return false;
    return finish(execution, ret_outcome);
}

void sql_execution_abandon(struct sql_execution *execution)
{
    struct connections *connections = execution->connections;
    if (!execution->began)
        return;
    execution->began = false;
    for (size_t i = 0; i < connections->spec->session_count; i++)
        connections_end_session(connections, i);
    connections_tear_down(connections);
}

/* ---- whole executions ---------------------------------------------------------------------------------- */

bool sql_execution_run_serial(struct sql_execution *execution, const uint8_t *order, size_t count,
                              struct sql_outcome *ret_outcome)
{
    const struct spec *spec = execution->connections->spec;
    if (!sql_execution_begin(execution, false))
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct spec_session *session = &spec->sessions[order[i]];
        if (!connections_set_up_session(execution->connections, order[i]))
            return fail(execution);
        /* A step that waits does so for ever, since no other session runs. */
        for (size_t n = 0; n < session->step_count && execution->running[order[i]] == NO_STEP; n++)
            if (!(execution->given_up & 1u << order[i]) && !sql_execution_step(execution, session->steps[n]))
                return false;
        if (!end_waits(execution) || !tear_down_session(execution, order[i]) ||
            !connections_reset_session(execution->connections, order[i]))
            return fail(execution);
    }
    return finish(execution, ret_outcome);
}

/* The first step of those left that can start: its session is idle, and no earlier step of the session is left. */
static size_t find_next(const struct sql_execution *execution, const size_t *steps, const bool *done,
                        size_t count)
{
    uint32_t later = 0;
    for (size_t i = 0; i < count; i++) {
        size_t session = execution->connections->spec->steps[steps[i]].session;
        if (done[i])
            continue;
        if (execution->running[session] == NO_STEP && !(later & 1u << session) &&
            !(execution->given_up & 1u << session))
            return i;
        later |= 1u << session;
    }
    return count;
}

bool sql_execution_run_steps(struct sql_execution *execution, const size_t *steps, size_t count,
                             const bool skip[SPEC_STEPS_MAX], struct sql_outcome *ret_outcome)
{
    bool done[SPEC_STEPS_MAX];
    if (!sql_execution_begin(execution, true))
        return false;
    for (size_t i = 0; i < count; i++)
        done[i] = skip[steps[i]];
    for (size_t next; (next = find_next(execution, steps, done, count)) < count;) {
        done[next] = true;
        if (!sql_execution_step(execution, steps[next]))
            return false;
    }
    return sql_execution_end(execution, ret_outcome);
}
