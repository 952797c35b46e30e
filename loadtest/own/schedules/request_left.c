/* What requests leave behind when they have their answers: an open transaction, or an advisory lock. */
#include "loadtest/own/schedules/request_runner_impl.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"

#include <stdio.h>

enum { LEFT_LEAST_US = 500000 };

/* A request that was ended by force, or a program that goes on after the answers. With the gate's lock. */
static bool goes_on(const struct request_runner *runner)
{
    bool on = runner->occupied > 0 || runner->record.faulted;
    for (size_t i = 0; i < runner->settings.requests; i++)
        on |= runner->actors[i].crashed;
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        on |= connection->used && connection->held;
    }
    return on;
}

static unsigned actor_of(const struct request_runner *runner, int32_t pid)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        if (connection->used && connection->server == RUNS_POSTGRES && connection->pid == pid &&
            connection->owner >= 0 && connection->owner < ACTORS_MAX)
            return (unsigned)connection->owner;
    }
    return ACTORS_MAX;
}

bool runner_note_left(struct request_runner *runner)
{
    struct run_record *record = &runner->record;
    int64_t until_us = monotonic_us() + (runner->quiet_us > LEFT_LEAST_US ? runner->quiet_us : LEFT_LEAST_US);
    struct shop_left left = {0};
    bool ok = true, some = true;
    while (ok && some && !goes_on(runner) && !interrupted()) {
        gate_unlock(runner->settings.gate);
        bool asked = shop_database_left(runner->settings.database, &left);
        gate_lock(runner->settings.gate);
        if (runner->settings.requests == 1) /* a lock of the whole service, such as that of a leader */
            runner->advisory = left.advisory;
        some = asked && (left.transaction || left.advisory > runner->advisory);
        if (!some || monotonic_us() >= until_us)
            break;
        gate_wait(runner->settings.gate, monotonic_us() + LOOK_US);
        ok = runner_await_transactions(runner);
    }
    if (!some || goes_on(runner) || interrupted())
        return ok;
    record->left_transaction = left.transaction;
    record->left_by = actor_of(runner, left.pid);
    snprintf(record->left, sizeof record->left, "%s", left.statement);
    return ok;
}
