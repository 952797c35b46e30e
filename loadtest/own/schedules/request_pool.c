/* Lets requests meet on one connection of the service's pool. A program that takes a connection for each statement can get one that carries
 * the transaction, the session lock or the settings of another request; under load it does when all other connections are in use. So
 * further requests occupy these: each is held at its first statement, and nothing of it runs. A program that keeps its connection for
 * the whole request loses nothing: then the second request waits for the first one to end. */
#include "loadtest/own/schedules/request_runner_impl.h"

#include "base/hash.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/sql/statement_words.h"

#include <stdio.h>
#include <string.h>

void runner_occupy(struct request_runner *runner, size_t connections, bool frees)
{
    runner->occupied = connections;
    runner->frees = frees;
}

void runner_free_connection(struct request_runner *runner)
{
    struct actor *occupier = &runner->occupiers[0];
    bool all_sent = runner->frees && !runner->freed && occupier->at != NOWHERE;
    for (size_t i = 0; i < runner->settings.requests; i++)
        all_sent &= runner->actors[i].sent > 0;
    if (!all_sent)
        return;
    runner->freed = true;
    gate_close_connection(runner->settings.gate, occupier->at);
    occupier->at = NOWHERE;
}

bool runner_send_occupiers(struct request_runner *runner)
{
    runner->freed = false;
    for (size_t i = 0; i < OCCUPIERS_MAX; i++)
        runner->occupiers[i].at = NOWHERE;
    for (size_t i = 0; i < runner->occupied; i++)
        if (!runner_send(runner, &runner->occupiers[i]))
            return false;
    return true;
}

/* The program keeps connections that no request uses. With the gate's lock. */
static bool has_idle_connection(struct request_runner *runner)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        if (connection->used && connection->server == RUNS_POSTGRES && !connection->held &&
            !connection->running)
            return true;
    }
    return false;
}

static bool is_held_in_postgres(const struct request_runner *runner, const struct actor *actor)
{
    return actor->state == REQUEST_HELD &&
           gate_connection(runner->settings.gate, actor->at)->server == RUNS_POSTGRES;
}

bool runner_measure_pool(struct request_runner *runner, size_t *ret_size)
{
    size_t requests = runner->settings.requests, size = 0;
    bool ok, waits = false;
    *ret_size = 0;
    runner->settings.requests = 0;
    runner->occupied = 0;
    ok = runner_start(runner);
    gate_lock(runner->settings.gate);
    for (bool goes_on = ok && has_idle_connection(runner);
         goes_on && size < OCCUPIERS_MAX && !interrupted();) {
        struct actor *next = &runner->occupiers[size];
        ok = runner_send(runner, next);
        goes_on = ok && is_held_in_postgres(runner, next);
        size += goes_on;
        waits = ok && next->state == REQUEST_INSIDE;
    }
    gate_unlock(runner->settings.gate);
    runner->occupied = OCCUPIERS_MAX; /* the end stops the service */
    ok = runner_end(runner) && ok;
    runner->occupied = 0;
    runner->settings.requests = requests;
    *ret_size = waits || size == OCCUPIERS_MAX ? size : 0;
    return ok;
}

void runner_learn(struct request_runner *runner)
{
    const struct run_record *record = &runner->record;
    runner->alone_count = record->count;
    for (size_t i = 0; i < record->count; i++)
        runner->alone[i] = sql_shape(HASH_OF_NOTHING, record->steps[i].text);
    runner->locks_session = false;
    for (size_t i = 0; i < record->count; i++)
        runner->locks_session |= strcasestr(record->steps[i].text, "advisory_lock") != NULL;
}

bool runner_locks_session(const struct request_runner *runner)
{
    return runner->locks_session;
}

bool runner_is_taken(const struct request_runner *runner, const struct actor *actor, size_t at)
{
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].at == at && &runner->actors[i] != actor)
            return true;
    for (size_t i = 0; i < OCCUPIERS_MAX; i++)
        if (runner->occupiers[i].at == at && &runner->occupiers[i] != actor)
            return true;
    const struct gate_connection *connection = gate_connection(runner->settings.gate, at);
    return connection->held && connection->claim != GATE_NO_OWNER && connection->claim != (int)actor->number;
}

bool runner_pool_is_busy(const struct request_runner *runner, const struct actor *actor)
{
    size_t used = 0;
    if (runner->occupied == 0)
        return false;
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        if (!connection->used || connection->server != RUNS_POSTGRES)
            continue;
        if (!runner_is_taken(runner, actor, i) &&
            (!connection->held || runner_may_send(runner, actor, connection)))
            return false;
        used++;
    }
    return used > runner->occupied;
}

static bool is_next(const struct request_runner *runner, const struct actor *actor, uint64_t shape)
{
    return actor->number < ACTORS_MAX && actor->state != REQUEST_ENDED &&
           actor->alone < runner->alone_count && runner->alone[actor->alone] == shape;
}

void runner_note_sent(const struct request_runner *runner, struct actor *actor, const char *text)
{
    actor->sent++;
    actor->alone += is_next(runner, actor, sql_shape(HASH_OF_NOTHING, text));
}

bool runner_may_send(const struct request_runner *runner, const struct actor *actor,
                     const struct gate_connection *connection)
{
    bool is_anothers = false;
    if (runner->occupied == 0 || actor->number == ACTORS_MAX || connection->trivial)
        return true;
    uint64_t shape = sql_shape(HASH_OF_NOTHING, connection->text);
    for (size_t i = 0; i < runner->settings.requests; i++)
        is_anothers |= &runner->actors[i] != actor && runner->actors[i].state == REQUEST_INSIDE &&
                       is_next(runner, &runner->actors[i], shape);
    return !is_anothers || is_next(runner, actor, shape);
}

void runner_note_stranger(struct request_runner *runner, const struct actor *actor,
                          const struct gate_connection *connection)
{
    struct run_record *record = &runner->record;
    int owner = connection->host;
    if (connection->trivial || connection->transaction == 'I' || owner == GATE_NO_OWNER ||
        owner >= ACTORS_MAX || owner == (int)actor->number || runner->actors[owner].crashed || *record->host)
        return;
    for (size_t i = record->count; i-- > 0 && !*record->host;)
        if (record->steps[i].actor == (unsigned)owner && *record->steps[i].text)
            snprintf(record->host, sizeof record->host, "%s", record->steps[i].text);
    if (*record->host)
        snprintf(record->stranger, sizeof record->stranger, "%s", connection->text);
}
