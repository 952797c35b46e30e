/* What each transition has read and written, by the statements that ran. A request that ends a transaction, also one that waited, publishes all
 * that it has changed and frees what it has locked; so then the footprint is that of the whole transaction. What cannot be known meets all. */
#include "loadtest/own/schedules/request_runner_impl.h"

#include <string.h>

void runner_trace(struct request_runner *runner, const struct known_tables *tables)
{
    runner->tables = tables;
}

static unsigned actors_in(const struct request_runner *runner, enum request_state state)
{
    unsigned bits = 0;
    for (size_t i = 0; i < runner->settings.requests; i++)
        bits |= runner->actors[i].state == state ? 1U << i : 0;
    return bits;
}

/* The requests that have a transaction open. */
static unsigned in_transaction(const struct request_runner *runner)
{
    unsigned bits = 0;
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        if (connection->used && connection->transaction != 'I' && connection->owner >= 0 &&
            connection->owner < ACTORS_MAX)
            bits |= 1U << connection->owner;
    }
    return bits;
}

/* A snapshot of a whole transaction is older than what its statements name. Of a deadlock the server may choose another victim each time. */
static bool has_old_snapshot_or_failed(const struct request_runner *runner)
{
    bool unclear = !runner->nature.read_committed;
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        unclear |= connection->used &&
                   (connection->serializable || connection->repeatable || connection->deadlock);
    }
    return unclear || runner->record.deadlock || runner->has_failed;
}

/* Requests that poll, wait in the program, use several connections or meet a fault depend on more than on tables. */
static bool is_unclear(const struct request_runner *runner, enum transition_kind kind)
{
    return kind != TRANSITION_STEP || runner->settings.fault != TRANSITION_STEP || runner->occupied > 0 ||
           runner->group_count > 0 || runner->known.count > 0 || runner->met.count > 0 ||
           *runner->record.repeated || *runner->record.polled || *runner->record.stranger ||
           actors_in(runner, REQUEST_INSIDE) || has_old_snapshot_or_failed(runner);
}

static struct footprint footprint_of(const struct request_runner *runner,
                                     const struct gate_connection *command)
{
    struct footprint footprint = {0};
    if (command->commits || command->trivial)
        return footprint;
    if (command->server == RUNS_POSTGRES && command->whole && *command->statements)
        return statement_footprint(runner->tables, runner->routines, command->statements);
    footprint_add_all(&footprint);
    return footprint;
}

void runner_footprints_begin(struct request_runner *runner)
{
    memset(runner->transactions, 0, sizeof runner->transactions);
    runner->was_blocked = runner->was_open = 0;
    runner->has_failed = false;
    if (!runner->tables)
        return;
    runner->was_blocked = actors_in(runner, REQUEST_BLOCKED);
    runner->was_open = in_transaction(runner);
}

void runner_footprint_before(struct request_runner *runner, const struct actor *actor,
                             enum transition_kind kind)
{
    if (!runner->tables)
        return;
    runner->last = (struct footprint){0};
    if (is_unclear(runner, kind) || actor->at == NOWHERE)
        footprint_add_all(&runner->last);
    else
        runner->last = footprint_of(runner, gate_connection(runner->settings.gate, actor->at));
    footprint_join(&runner->transactions[actor->number], &runner->last);
}

void runner_footprint_after(struct request_runner *runner, const struct actor *actor,
                            enum transition_kind kind)
{
    if (!runner->tables)
        return;
    const unsigned blocked = actors_in(runner, REQUEST_BLOCKED), open = in_transaction(runner);
    const unsigned went_on = (runner->was_blocked & ~blocked) | (runner->was_open & ~open) |
                             1U << actor->number;
    for (unsigned i = 0; i < runner->settings.requests; i++) {
        if (!(went_on & 1U << i))
            continue;
        /* A request that still waits has changed nothing for others. */
        if (i == actor->number && blocked & 1U << i)
            continue;
        if (i != actor->number || !(open & 1U << i))
            footprint_join(&runner->last, &runner->transactions[i]);
        if (!(open & 1U << i))
            runner->transactions[i] = (struct footprint){0};
    }
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        runner->has_failed |= gate_connection(runner->settings.gate, i)->transaction == 'E';
    if (is_unclear(runner, kind))
        footprint_add_all(&runner->last);
    runner->was_blocked = blocked;
    runner->was_open = open;
}

struct footprint runner_footprint(const struct request_runner *runner)
{
    return runner->last;
}
