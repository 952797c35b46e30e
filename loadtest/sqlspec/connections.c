/* Opens, prepares and cleans up the connections of a specification. */
#include "loadtest/sqlspec/connections.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETUP_US = 60000000, CONTROL_US = 10000000, WAITS_SQL_MAX = 8192 };

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
    bool well = ret_connections->control != NULL;
    for (size_t i = 0; well && i < spec->session_count; i++) {
        struct session *session = open_one(driver, url, path, spec->sessions[i].name);
        ret_connections->sessions[i] = session;
        well = session != NULL;
        if (well) {
            session->on_notice = report_notice;
            session->context = ret_connections;
        }
    }
    if (!well)
        connections_close(ret_connections);
    return well;
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

/* ---- waiting ------------------------------------------------------------------------------------------- */

static size_t session_of(const struct connections *connections, int64_t id)
{
    size_t i = 0;
    while (i < connections->spec->session_count && connections->sessions[i]->id != id)
        i++;
    return i;
}

static int64_t cell_number(const json_t *row, size_t column)
{
    const char *text = json_string_value(json_array_get(row, column));
    return text ? strtoll(text, NULL, 10) : -1;
}

bool connections_waits(struct connections *connections, uint32_t ret_holders[SPEC_SESSIONS_MAX])
{
    struct session *control = connections->control;
    size_t count = connections->spec->session_count, i;
    int64_t ids[SPEC_SESSIONS_MAX];
    char sql[WAITS_SQL_MAX];
    json_t *row;
    for (size_t n = 0; n < count; n++) {
        ids[n] = connections->sessions[n]->id;
        ret_holders[n] = 0;
    }
    int64_t now_us = monotonic_us();
    if (now_us < connections->next_ask_us) {
        session_poll(connections->sessions, count, (int)((connections->next_ask_us - now_us) / 1000) + 1);
        if (monotonic_us() < connections->next_ask_us)
            return true;
    }
    control->driver->waits_sql(ids, count, sql, sizeof sql);
    if (!session_run(control, sql, monotonic_us() + CONTROL_US)) {
        if (!interrupted())
            complain("cannot ask %s which sessions wait: %s", control->driver->server, control->error);
        return false;
    }
    connections->next_ask_us = monotonic_us() + (int64_t)control->driver->waits_pause_ms * 1000;
    const json_t *rows = json_object_get(json_array_get(control->results, 0), "rows");
    json_array_foreach(rows, i, row) {
        size_t waiter = session_of(connections, cell_number(row, 0)),
               holder = session_of(connections, cell_number(row, 1));
        if (waiter < count)
            ret_holders[waiter] |= holder < count && holder != waiter ? 1u << holder : HOLDER_UNKNOWN;
    }
    /* A holder that is known makes one that is not, such as a parallel worker's, uninteresting. */
    for (size_t n = 0; n < count; n++)
        if (ret_holders[n] != HOLDER_UNKNOWN)
            ret_holders[n] &= ~HOLDER_UNKNOWN;
    return true;
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

static bool run_block(struct connections *connections, struct session *session, const struct sql_block *block,
                      const char *what)
{
    if (!block->sql)
        return true;
    bool well = session_run(session, block->sql, monotonic_us() + SETUP_US);
    if (well)
        report_rows(connections, session);
    else if (!interrupted())
        complain("%s:%d: %s failed: %s", connections->path, block->line, what, session->error);
    return well;
}

bool connections_set_up(struct connections *connections)
{
    const struct spec *spec = connections->spec;
    for (size_t i = 0; i < spec->setup_count; i++)
        if (!run_block(connections, connections->control, &spec->setups[i], "the setup"))
            return false;
    return true;
}

bool connections_set_up_session(struct connections *connections, size_t session)
{
    const struct spec_session *of = &connections->spec->sessions[session];
    char what[100];
    (void)snprintf(what, sizeof what, "the setup of session %.60s", of->name);
    return run_block(connections, connections->sessions[session], &of->setup, what);
}

void connections_tear_down_session(struct connections *connections, size_t session)
{
    const struct spec_session *of = &connections->spec->sessions[session];
    char what[100];
    (void)snprintf(what, sizeof what, "the teardown of session %.60s", of->name);
    (void)run_block(connections, connections->sessions[session], &of->teardown, what);
    struct session *on = connections->sessions[session];
    /* A transaction that stays open would let the teardown of the file wait for its locks. */
    if (on->state == SESSION_IDLE && on->driver->transaction(on) != TRANSACTION_NONE)
        (void)session_run(on, "ROLLBACK", monotonic_us() + connections->step_us);
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
    if (on->state == SESSION_IDLE && on->driver->transaction(on) != TRANSACTION_NONE)
        (void)session_run(on, "ROLLBACK", monotonic_us() + CONTROL_US);
}

bool connections_reset(struct connections *connections)
{
    for (size_t i = 0; i < connections->spec->session_count; i++) {
        struct session *session = connections->sessions[i];
        if (session->driver->transaction(session) != TRANSACTION_NONE)
            (void)session_run(session, "ROLLBACK", monotonic_us() + CONTROL_US);
        for (const char *const *sql = session->driver->reset; *sql && session->state == SESSION_IDLE; sql++)
            (void)session_run(session, *sql, monotonic_us() + CONTROL_US);
        if (session->state != SESSION_IDLE) {
            if (!interrupted())
                complain("session %s lost its connection: %s", connections->spec->sessions[i].name,
                         session->error);
            return false;
        }
    }
    return true;
}
