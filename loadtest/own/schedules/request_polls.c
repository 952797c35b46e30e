/* Tracks which requests poll PostgreSQL, as they do while they wait for a lock that is a row. Such a request is held until another one has
 * changed something, or waits out its tries alone. */
#include "loadtest/own/schedules/request_runner_impl.h"

#include "base/clock.h"
#include "base/text.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/own/gate/message_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    WAIT_OUT_US = 6000000, /* many programs give up after 5 s */
    WAIT_OUT_STATEMENTS = 1000,
    READY_US = 1000000,
    TIMES_MOST = 5, /* when nothing else can happen: leases end, and a request waits out its tries */
};

static bool is_open(const struct gate_connection *connection)
{
    return connection->used && connection->transaction != 'I';
}

/* A request that has written to the table of "expires", or called a function, may hold a lock there until it deletes a row. */
static void note_holder(struct request_runner *runner, unsigned actor, const char *text,
                        enum statement_effect effect)
{
    const char *expires = runner->settings.service->description->expires;
    uint32_t table = poll_table(text);
    if (!expires || effect != EFFECT_CHANGES || (table != 0 && table != poll_table(expires)))
        return;
    if (strncasecmp(text, "DELETE", 6) == 0)
        runner->holds &= ~(1U << actor);
    else
        runner->holds |= 1U << actor;
}

static bool is_closed(struct request_runner *runner, size_t at, const struct gate_connection *connection)
{
    return connection != gate_connection(runner->settings.gate, at);
}

/* The connection of PID, when its statement has ended: a client can go on after an error, before the server says that it is ready. Some pools
 * close the connection after an error. A client can also close it, or begin the next transaction. NULL: it is not known. */
static const struct gate_connection *ended_connection(struct request_runner *runner, size_t at, int32_t pid)
{
    const int64_t until_us = monotonic_us() + READY_US;
    const struct gate_connection *now = gate_connection_of(runner->settings.gate, at, pid);
    while (now && now->running && !is_closed(runner, at, now) && monotonic_us() < until_us &&
           !interrupted()) {
        gate_wait(runner->settings.gate, until_us);
        now = gate_connection_of(runner->settings.gate, at, pid);
    }
    return now && (!now->running || (is_closed(runner, at, now) && *now->sqlstate)) ? now : NULL;
}

/* A connection was closed with a transaction in which something had happened, and PID is that of the next one in its place. */
static void forget_closed(struct request_runner *runner, size_t at, int32_t pid)
{
    if (runner->poll_pids[at] == pid)
        return;
    runner->poll_pids[at] = pid;
    if (idle_polls_drop(&runner->polls, at))
        idle_polls_changed(&runner->polls);
}

static void note(struct request_runner *runner, const struct actor *actor, size_t at, int32_t pid,
                 const char *text, bool was_open, bool is_commit)
{
    const struct gate_connection *now = ended_connection(runner, at, pid);
    bool is_known = now && !actor->crashed,
         stays_open = now && !is_closed(runner, at, now) && now->after != 'I';
    forget_closed(runner, at, pid);
    enum statement_effect effect = is_commit ? EFFECT_ENDS
                                   : is_known
                                       ? statement_effect(runner->routines, text, now->answer, now->sqlstate)
                                       : EFFECT_CHANGES;
    note_holder(runner, actor->number, text, effect);
    idle_polls_ended(&runner->polls, actor->number, at, text, was_open, stays_open, effect,
                     is_known && statement_writes_one_table(runner->routines, text));
}

void runner_note_statement(struct request_runner *runner, const struct actor *actor, size_t at,
                           const struct gate_connection *command)
{
    if (actor->state == REQUEST_BLOCKED)
        poll_history_clear(&runner->polls.history[actor->number]);
    else
        note(runner, actor, at, command->pid, command->text, is_open(command), command->commits);
}

void runner_note_unblocked(struct request_runner *runner, const struct actor *actor, size_t at, int32_t pid)
{
    if (!actor->waits || actor->waits->server != RUNS_POSTGRES)
        return;
    note(runner, actor, at, pid, actor->waits->text, true, false);
    poll_history_clear(
        &runner->polls.history[actor->number]); /* it has seen what was there before it waited */
}

uint64_t runner_polls(const struct request_runner *runner, const struct actor *actor)
{
    if (actor->state != REQUEST_HELD || actor->at == NOWHERE)
        return 0;
    const struct gate_connection *connection = gate_connection(runner->settings.gate, actor->at);
    return connection->server == RUNS_POSTGRES && !connection->commits
               ? poll_history_repeats(&runner->polls.history[actor->number], connection->text,
                                      is_open(connection))
               : 0;
}

bool runner_ends_nothing(const struct request_runner *runner, const struct actor *actor)
{
    if (actor->state != REQUEST_HELD || actor->at == NOWHERE)
        return false;
    const struct gate_connection *connection = gate_connection(runner->settings.gate, actor->at);
    return connection->server == RUNS_POSTGRES && is_open(connection) && !connection->serializable &&
           statement_effect(NULL, connection->text, "", "") == EFFECT_ENDS &&
           idle_polls_ends_nothing(&runner->polls, actor->at) && !runner->nature.serializable;
}

bool runner_can_wait_out(const struct request_runner *runner, const struct actor *actor)
{
    uint64_t poll = runner_polls(runner, actor);
    return poll && runner->waited[actor->number] == 0 &&
           (runner->waits_out_all || known_polls_end(&runner->known, poll) == POLL_GIVES_UP);
}

/* The next statement of ACTOR is one of those in BEFORE. */
static bool goes_on(const struct request_runner *runner, const struct actor *actor,
                    const struct poll_history *before)
{
    if (actor->state != REQUEST_HELD || actor->at == NOWHERE)
        return false;
    const struct gate_connection *connection = gate_connection(runner->settings.gate, actor->at);
    return connection->server == RUNS_POSTGRES &&
           poll_history_has(before, connection->text, is_open(connection));
}

bool runner_wait_out(struct request_runner *runner, struct actor *actor, struct run_step *step,
                     enum poll_end *ret_end)
{
    struct poll_history before = runner->polls.history[actor->number];
    const uint64_t poll = runner_polls(runner, actor), fingerprint = runner->fingerprint;
    const int64_t end_us = monotonic_us() + WAIT_OUT_US;
    static struct run_step scratch;
    bool ok = true, in_vain = true;
    unsigned statements = 0;
    char text[MESSAGE_TEXT];
    snprintf(text, sizeof text, "%s", gate_connection(runner->settings.gate, actor->at)->text);
    runner->waited[actor->number]++;
    while (ok && in_vain && goes_on(runner, actor, &before) && statements < WAIT_OUT_STATEMENTS &&
           monotonic_us() < end_us && !interrupted()) {
        ok = runner_run_statement(runner, actor, &scratch);
        in_vain = runner->polls.history[actor->number].count > 0;
        statements++;
    }
    *ret_end = in_vain && !goes_on(runner, actor, &before) ? POLL_GIVES_UP : POLL_GOES_ON;
    known_polls_add(&runner->met, poll, *ret_end);
    runner->fingerprint = fingerprint;
    if (step) {
        snprintf(step->text, sizeof step->text, "(alone) repeats '%.300s'", text);
        text_mend(step->text);
        snprintf(step->answer, sizeof step->answer, "%u statements without success; %s", statements,
                 *ret_end == POLL_GIVES_UP ? "then it gives up"
                 : in_vain                 ? "it has not given up"
                                           : "then it got what it waited for");
    }
    return ok;
}

/* Lets ACTOR run as far as it can without the others, up to MOST steps. If it polls, and is known to give up, it does so. RET_COUNT: of its
 * steps. */
static bool run_actor(struct request_runner *runner, unsigned actor, unsigned most, unsigned *ret_count)
{
    struct transition choices[ENABLED_MAX];
    bool can = true;
    for (*ret_count = 0; can && *ret_count < most; *ret_count += can) {
        size_t count = runner_enabled(runner, choices), i = 0;
        while (i < count && (choices[i].actor != actor ||
                             (choices[i].kind != TRANSITION_STEP && choices[i].kind != TRANSITION_TIMEOUT)))
            i++;
        can = i < count;
        if (can && !runner_apply(runner, choices[i]))
            return false;
    }
    return true;
}

/* Of the poll at which ACTOR is held, if it is not known, finds out whether it gives up. RET_GAVE_UP: it did. */
static bool try_poll(struct request_runner *runner, struct actor *actor, bool *ret_gave_up)
{
    enum poll_end end = POLL_GOES_ON;
    const uint64_t poll = runner_polls(runner, actor);
    bool ok = true;
    if (poll && known_polls_end(&runner->known, poll) == POLL_UNKNOWN) {
        struct run_step *step = runner_add_step(runner, actor->number, TRANSITION_TIMEOUT);
        ok = step && runner_wait_out(runner, actor, step, &end) && runner_wake_waiters(runner);
        known_polls_add(&runner->known, poll, end);
    }
    *ret_gave_up = end == POLL_GIVES_UP;
    return ok;
}

bool runner_try_polls(struct request_runner *runner, unsigned steps, bool *ret_done)
{
    struct transition choices[ENABLED_MAX];
    unsigned count;
    bool ok = runner_start(runner) && run_actor(runner, 0, steps, &count);
    *ret_done = !ok || count < steps;
    for (bool goes_on = !*ret_done; ok && goes_on;) {
        ok = run_actor(runner, 1, RUN_STEPS_MAX, &count);
        gate_lock(runner->settings.gate);
        ok = ok && try_poll(runner, &runner->actors[1], &goes_on);
        gate_unlock(runner->settings.gate);
    }
    while (ok && runner_enabled(runner, choices) > 0)
        ok = runner_apply(runner, choices[0]);
    return runner_end(runner) && ok;
}

void runner_wait_out_all(struct request_runner *runner)
{
    runner->waits_out_all = true;
}

bool runner_end_rows(struct request_runner *runner, char *ret_text)
{
    char text[MESSAGE_TEXT];
    int64_t rows = 0;
    gate_unlock(runner->settings.gate);
    bool ok = shop_database_expire(runner->settings.database, &rows);
    gate_lock(runner->settings.gate);
    if (rows < 0)
        snprintf(text, sizeof text, "(fault: no lease ends, since its row is locked)");
    else
        snprintf(text, sizeof text, "(fault: leases end in the database: %" PRId64 " row%s)", rows,
                 rows == 1 ? "" : "s");
    message_append_text(ret_text, text);
    idle_polls_changed(&runner->polls);
    return ok;
}

/* Time passes for the leases in PostgreSQL. */
static bool pass_leases(struct request_runner *runner)
{
    unsigned holder = 0;
    while (holder + 1 < runner->settings.requests && !(runner->holds & 1U << holder))
        holder++;
    struct run_step *step = runner_add_step(runner, holder, TRANSITION_EXPIRE);
    runner->ended_rows++;
    if (!step || !runner_end_rows(runner, step->text))
        return false;
    step->fingerprint = runner->fingerprint;
    return true;
}

bool runner_pass_time_sql(struct request_runner *runner)
{
    enum poll_end end;
    if (runner->settings.service->description->expires && runner->ended_rows < TIMES_MOST)
        return pass_leases(runner);
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner_can_wait_out(runner, &runner->actors[i]))
            return true;
    for (size_t i = 0; i < runner->settings.requests && !interrupted(); i++) {
        struct actor *actor = &runner->actors[i];
        uint64_t poll = runner_polls(runner, actor);
        if (!poll || known_polls_end(&runner->met, poll) == POLL_GOES_ON || runner->waited[i] >= TIMES_MOST)
            continue;
        struct run_step *step = runner_add_step(runner, (unsigned)i, TRANSITION_TIMEOUT);
        if (!step || !runner_wait_out(runner, actor, step, &end))
            return false;
        step->after = actor->state;
        step->fingerprint = runner->fingerprint;
        if (end == POLL_GIVES_UP || !runner_polls(runner, actor))
            return runner_wake_waiters(runner);
    }
    return true;
}

void runner_note_polls(struct request_runner *runner)
{
    struct run_record *record = &runner->record;
    for (size_t i = 0; i < runner->settings.requests; i++) {
        const uint64_t poll = runner_polls(runner, &runner->actors[i]);
        const enum poll_end end = known_polls_end(&runner->known, poll);
        const bool goes_on = end != POLL_GIVES_UP, is_unknown = end == POLL_UNKNOWN;
        if (!poll || (*record->polled && record->polls_on >= goes_on && record->polls_unknown >= is_unknown))
            continue;
        snprintf(record->polled, sizeof record->polled, "%s",
                 gate_connection(runner->settings.gate, runner->actors[i].at)->text);
        record->polls_on |= goes_on;
        record->polls_unknown |= is_unknown;
    }
}
