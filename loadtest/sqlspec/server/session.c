/* Waits for sessions, whatever server they are connected to. */
#include "loadtest/sqlspec/server/session.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"

#include <poll.h>
#include <stdio.h>

void session_poll(struct session *const *sessions, size_t count, int ms)
{
    struct pollfd sockets[SESSIONS_MAX];
    nfds_t used = 0;
    for (size_t i = 0; i < count && used < SESSIONS_MAX; i++)
        if (sessions[i]->state == SESSION_BUSY) {
            short events = 0;
            int fd = sessions[i]->driver->socket(sessions[i], &events);
            sockets[used++] = (struct pollfd){.fd = fd, .events = events};
        }
    (void)poll(sockets, used, ms);
}

bool session_wait(struct session *session, int64_t deadline_us)
{
    enum { SLICE_MS = 50, AFTER_CANCEL_US = 2000000 };
    bool cancelled = false;
    while (session->driver->pump(session) == SESSION_BUSY) {
        if (!cancelled && (interrupted() || monotonic_us() >= deadline_us)) {
            session->driver->cancel(session);
            cancelled = true;
            deadline_us = monotonic_us() + AFTER_CANCEL_US;
        } else if (cancelled && monotonic_us() >= deadline_us) {
            (void)snprintf(session->error, sizeof session->error,
                           "the server does not answer, nor does it cancel the statement");
            return false;
        }
        session_poll(&session, 1, SLICE_MS);
    }
    const json_t *error = results_error(session->results);
    if (session->state == SESSION_IDLE && !error)
        return true;
    if (session->state == SESSION_IDLE)
        (void)snprintf(session->error, sizeof session->error, "%s",
                       json_string_value(json_object_get(error, "error")));
    return false;
}

bool session_run(struct session *session, const char *sql, int64_t deadline_us)
{
    return session->driver->start(session, sql) && session_wait(session, deadline_us);
}

void session_add(struct session *session, json_t *result)
{
    if (result && json_array_append_new(session->results, result) == 0)
        return;
    (void)snprintf(session->error, sizeof session->error, "out of memory");
    session->state = SESSION_LOST;
}

const json_t *results_error(const json_t *results)
{
    size_t i;
    json_t *result;
    json_array_foreach(results, i, result) {
        if (json_object_get(result, "error"))
            return result;
    }
    return NULL;
}

const char *results_error_code(const json_t *results)
{
    const char *code = json_string_value(json_object_get(results_error(results), "code"));
    return code ? code : "";
}
