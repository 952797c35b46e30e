/* Faults of a request: which are possible now, and its crash. */
#include "loadtest/own/schedules/request_runner_impl.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <string.h>

enum { ASK_US = 5000000 }; /* until PostgreSQL has ended a session */

/* Its answer says that what it did lasts. */
static bool commits(const struct request_runner *runner, const struct gate_connection *connection)
{
    static const char *const WRITES[] = {"INSERT", "UPDATE", "DELETE", "WITH", "MERGE", "END"};
    if (connection->server != RUNS_POSTGRES || runner_splits(runner, connection))
        return false;
    if (strcasestr(connection->text, "COMMIT"))
        return true;
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++)
        if (strncasecmp(connection->text, WRITES[i], strlen(WRITES[i])) == 0)
            return runner_runs_alone(connection) || strcmp(WRITES[i], "END") == 0;
    return false;
}

/* With the gate's lock. */
bool runner_can_fault(const struct request_runner *runner, const struct actor *actor)
{
    bool another_runs = false;
    if (runner->record.faulted || actor->state == REQUEST_ENDED)
        return false;
    for (size_t i = 0; i < runner->settings.requests; i++)
        another_runs |= i != actor->number && runner->actors[i].state != REQUEST_ENDED;
    switch (runner->settings.fault) {
    case TRANSITION_EXPIRE:
        return another_runs &&
               (held_keys_has(&runner->held, actor->number, NULL) || runner->holds & 1U << actor->number);
    case TRANSITION_CRASH: /* a statement that has been sent is committed without its client */
        return actor->state == REQUEST_HELD && actor->steps > 0 &&
               !gate_connection(runner->settings.gate, actor->at)->commits;
    case TRANSITION_CUT:
        return actor->state == REQUEST_HELD &&
               commits(runner, gate_connection(runner->settings.gate, actor->at));
    default: return false;
    }
}

/* PostgreSQL ends a session whose connection was closed as soon as it sees that. */
static bool await_end_of_session(struct request_runner *runner, int32_t pid)
{
    int64_t end = monotonic_us() + ASK_US;
    bool has = true;
    while (has && monotonic_us() < end && !interrupted()) {
        gate_unlock(runner->settings.gate);
        bool asked = shop_database_has_session(runner->settings.database, pid, &has);
        gate_lock(runner->settings.gate);
        if (!asked)
            return false;
        if (has)
            gate_wait(runner->settings.gate, monotonic_us() + LOOK_US);
    }
    if (has && !interrupted())
        complain("PostgreSQL did not end the session of a closed connection within %d s", ASK_US / 1000000);
    return !has;
}

/* A connection that is in no transaction is in a pool, for others. In Redis a MULTI or WATCH begins one. With the gate's lock. */
bool runner_crash(struct request_runner *runner, struct actor *actor)
{
    struct gate *gate = runner->settings.gate;
    bool ok = true;
    actor->crashed = true;
    actor->at = NOWHERE;
    for (size_t i = 0; i < GATE_CONNECTIONS && ok; i++) {
        const struct gate_connection *connection = gate_connection(gate, i);
        if (!connection->used || connection->owner != (int)actor->number)
            continue;
        int32_t pid = connection->pid;
        if (connection->server == RUNS_POSTGRES && (connection->held || connection->transaction != 'I')) {
            gate_close_connection(gate, i);
            ok = await_end_of_session(runner, pid);
        } else if (connection->remembers) {
            gate_close_connection(gate, i);
        } else if (connection->held) {
            gate_refuse(gate, i);
        }
    }
    return ok && runner_settle(runner, actor);
}
