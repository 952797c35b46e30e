/* Opens, prepares and cleans up the connections of a specification. */
#include "loadtest/sqlspec/connections.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETUP_US = 60000000, SAY_US = 2000000, BLOCKED_US = 1000000, CONTROL_US = 10000000, SLICE_MS = 20 };

/* ---- opening ------------------------------------------------------------------------------------------- */

static void report_notice(void *context, const struct session *session, const char *text)
{
    struct connections *connections = context;
    for (size_t i = 0; i < connections->spec->session_count; i++)
        if (connections->sessions[i] == session)
            connections_report(
                connections, "notice",
                json_pack("{s:s, s:s}", "session", connections->spec->sessions[i].name, "text", text));
}

/* "isolation/NAME/SESSION", as the isolation tester names its sessions. */
static void label_of(const char *path, const char *session, char *ret_label, size_t size)
{
    char copy[200];
    (void)snprintf(copy, sizeof copy, "%s", path);
    char *name = basename(copy), *end = strrchr(name, '.');
    if (end)
        *end = 0;
    (void)snprintf(ret_label, size, "isolation/%.100s/%.60s", name, session);
}

static struct session *open_one(const struct sql_driver *driver, const char *url, const char *path,
                                const char *name)
{
    char error[SESSION_ERROR_SIZE], label[200];
    label_of(path, name, label, sizeof label);
    struct session *session = driver->open(url, label, error);
    if (!session)
        complain("cannot connect to %s: %s. Start the server, or correct --database", driver->server, error);
    return session;
}

bool connections_open(const struct sql_driver *driver, const char *url, const struct spec *spec,
                      const char *path, struct connections *ret_connections)
{
    *ret_connections = (struct connections){.spec = spec, .path = path};
    ret_connections->control = open_one(driver, url, path, "control connection");
    bool ok = ret_connections->control != NULL;
    for (size_t i = 0; ok && i < spec->session_count; i++) {
        struct session *session = open_one(driver, url, path, spec->sessions[i].name);
        ret_connections->sessions[i] = session;
        ok = session != NULL;
        if (ok) {
            session->on_notice = report_notice;
            session->context = ret_connections;
        }
    }
    if (!ok)
        connections_close(ret_connections);
    return ok;
}

void connections_close(struct connections *connections)
{
    for (size_t i = 0; i < connections->spec->session_count; i++)
        if (connections->sessions[i]) {
            connections->sessions[i]->driver->close(connections->sessions[i]);
            connections->sessions[i] = NULL;
        }
    if (connections->control)
        connections->control->driver->close(connections->control);
    connections->control = NULL;
}

/* ---- setup and teardown -------------------------------------------------------------------------------- */

void connections_report(struct connections *connections, const char *kind, json_t *members)
{
    if (members && json_object_set_new(members, "event", json_string(kind)) == 0 && connections->on_event)
        connections->on_event(connections->context, members);
    json_decref(members);
}

/* Reports the rows that a setup or teardown returned. */
static void report_rows(struct connections *connections, const struct session *session)
{
    connections_report(connections, "rows", json_pack("{s:O}", "results", session->results));
}

bool connections_await(struct connections *connections, struct session *session, int line, const char *what)
{
    int64_t began_us = monotonic_us(), next_us = began_us + BLOCKED_US;
    size_t number = 0, count = connections->spec->session_count;
    uint32_t holders[SPEC_SESSIONS_MAX];
    char lock[LOCK_TEXT_SIZE];
    bool said = false;
    while (number < count && connections->sessions[number] != session)
        number++;
    while (session->driver->pump(session) == SESSION_BUSY && !interrupted() &&
           monotonic_us() - began_us < SETUP_US) {
        session_poll(&session, 1, SLICE_MS);
        if (number < count && monotonic_us() >= next_us) {
            next_us = monotonic_us() + BLOCKED_US;
            if (!connections_waits(connections, holders))
                return false;
            if (holders[number] && session->driver->pump(session) == SESSION_BUSY) {
                connections_describe_wait(connections, number, holders[number], lock);
                complain("%s:%d: %s waits for %s. Release the lock in an earlier block or step",
                         connections->path, line, what, lock);
                (void)session_wait(session, monotonic_us());
                return false;
            }
        }
        if (!said && monotonic_us() - began_us >= SAY_US && session->state == SESSION_BUSY) {
            said = true;
            complain("%s:%d: %s still runs after %d s. The command cancels it after %d s", connections->path,
                     line, what, SAY_US / 1000000, SETUP_US / 1000000);
        }
    }
    bool is_late = session->state == SESSION_BUSY && !interrupted();
    (void)session_wait(session, is_late ? monotonic_us() : began_us + SETUP_US);
    if (is_late)
        complain("%s:%d: %s did not end within %d s", connections->path, line, what, SETUP_US / 1000000);
    return session->state == SESSION_IDLE && !is_late;
}

static bool run_block(struct connections *connections, struct session *session, const struct sql_block *block,
                      const char *what)
{
    if (!block->sql)
        return true;
    bool started = session->driver->start(session, block->sql);
    if (started && !connections_await(connections, session, block->line, what))
        return false;
    const json_t *error = results_error(session->results);
    if (started && !error) {
        report_rows(connections, session);
        return true;
    }
    if (!interrupted())
        complain("%s:%d: %s failed: %s", connections->path, block->line, what,
                 error ? json_string_value(json_object_get(error, "error")) : session->error);
    return false;
}

bool connections_set_up(struct connections *connections)
{
    const struct spec *spec = connections->spec;
    for (size_t i = 0; i < spec->setup_count; i++)
        if (!run_block(connections, connections->control, &spec->setups[i], "the setup"))
            return false;
    const struct session *control = connections->control;
    if (control->driver->transaction(control) == TRANSACTION_NONE)
        return true;
    complain("%s:%d: the setup leaves a transaction open, so no session sees what it wrote. Add COMMIT to it",
             connections->path, spec->setups[spec->setup_count - 1].line);
    (void)session_run(connections->control, "ROLLBACK", monotonic_us() + CONTROL_US);
    return false;
}

bool connections_set_up_session(struct connections *connections, size_t session)
{
    const struct spec_session *of = &connections->spec->sessions[session];
    char what[100];
    (void)snprintf(what, sizeof what, "the setup of session %.60s", of->name);
    return run_block(connections, connections->sessions[session], &of->setup, what);
}

/* Rolls back, and releases the locks for which others would wait. A connection that is lost may still hold locks on the server. */
static void let_go(struct connections *connections, struct session *session)
{
    char sql[100];
    if (session->state == SESSION_IDLE && session->driver->transaction(session) != TRANSACTION_NONE)
        (void)session_run(session, "ROLLBACK", monotonic_us() + CONTROL_US);
    for (const char *const *release = session->driver->release; *release && session->state == SESSION_IDLE;
         release++)
        (void)session_run(session, *release, monotonic_us() + CONTROL_US);
    if (session->state == SESSION_IDLE)
        return;
    session->driver->terminate_sql(session->id, sql, sizeof sql);
    (void)session_run(connections->control, sql, monotonic_us() + CONTROL_US);
}

void connections_tear_down_session(struct connections *connections, size_t session)
{
    const struct spec_session *of = &connections->spec->sessions[session];
    struct session *on = connections->sessions[session];
    char what[100];
    (void)snprintf(what, sizeof what, "the teardown of session %.60s", of->name);
    (void)run_block(connections, on, &of->teardown, what);
    let_go(connections, on);
}

void connections_tear_down(struct connections *connections)
{
    (void)run_block(connections, connections->control, &connections->spec->teardown, "the teardown");
}

/* True: every value of every row is true, as PostgreSQL ("t") or MariaDB ("1") writes it, and there is one. */
static bool is_true(const json_t *results)
{
    const json_t *rows = json_object_get(json_array_get(results, 0), "rows");
    size_t i, n;
    json_t *row, *cell;
    json_array_foreach(rows, i, row) {
        json_array_foreach(row, n, cell) {
            const char *text = json_string_value(cell);
            if (!text || (strcmp(text, "t") != 0 && strcmp(text, "1") != 0))
                return false;
        }
    }
    return json_array_size(rows) > 0;
}

bool connections_check_invariants(struct connections *connections, const char **ret_broken)
{
    const struct spec *spec = connections->spec;
    *ret_broken = NULL;
    for (size_t i = 0; i < spec->invariant_count && !*ret_broken; i++) {
        const struct sql_block *block = &spec->invariants[i];
        if (!session_run(connections->control, block->sql, monotonic_us() + CONTROL_US)) {
            if (!interrupted())
                complain("%s:%d: the invariant failed: %s", connections->path, block->line,
                         connections->control->error);
            return false;
        }
        if (!is_true(connections->control->results))
            *ret_broken = block->sql;
    }
    return true;
}

void connections_end_session(struct connections *connections, size_t session)
{
    struct session *on = connections->sessions[session];
    if (on->driver->pump(on) == SESSION_BUSY)
        on->driver->cancel(on);
    (void)session_wait(on, monotonic_us() + CONTROL_US);
    let_go(connections, on);
}

static bool is_there(const struct connections *connections, size_t number)
{
    const struct session *session = connections->sessions[number];
    if (session->state != SESSION_IDLE && !interrupted())
        complain("session %s lost its connection: %s", connections->spec->sessions[number].name,
                 session->error);
    return session->state == SESSION_IDLE;
}

bool connections_roll_back(struct connections *connections, size_t number)
{
    struct session *session = connections->sessions[number];
    if (session->driver->transaction(session) != TRANSACTION_NONE)
        (void)session_run(session, "ROLLBACK", monotonic_us() + CONTROL_US);
    return is_there(connections, number);
}

bool connections_reset_session(struct connections *connections, size_t number)
{
    struct session *session = connections->sessions[number];
    bool ok = connections_roll_back(connections, number);
    for (const char *const *sql = session->driver->reset; ok && *sql && session->state == SESSION_IDLE; sql++)
        (void)session_run(session, *sql, monotonic_us() + CONTROL_US);
    return ok && is_there(connections, number);
}

bool connections_start(struct connections *connections, size_t step)
{
    const struct spec_step *of = &connections->spec->steps[step];
    struct session *session = connections->sessions[of->session];
    if (session->driver->start(session, of->block.sql))
        return true;
    complain("%s: session %s lost its connection: %s", connections->path,
             connections->spec->sessions[of->session].name, session->error);
    return false;
}

bool connections_reset(struct connections *connections)
{
    for (size_t i = 0; i < connections->spec->session_count; i++)
        if (!connections_reset_session(connections, i))
            return false;
    return true;
}
