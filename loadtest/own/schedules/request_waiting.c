/* Waits until a request has stopped: held at its next statement, blocked in a server, waiting in the program, or at its end. */
#include "loadtest/own/schedules/request_runner_impl.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/process/usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    STUCK_US = 4000000, /* longer than PostgreSQL's deadlock_timeout of one second */
    QUEUE_US =
        50000, /* until a program that goes on waits in the queue of its pool; its first statement gets the whole quiet time */
    WORK_TIMES = 10, /* quiet times, at most, that are waited for a program that works */
};

static int actor_of_pid(struct request_runner *runner, int32_t pid)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        if (connection->used && connection->pid == pid)
            return connection->owner;
    }
    return GATE_NO_OWNER;
}

/* Sets the bits of what the statement that runs on connection AT waits for; 0: it does not wait. The gate's lock is not held while the
 * servers are asked. False, having said why on stderr. */
static bool ask_blockers(struct request_runner *runner, size_t at, unsigned *ret_blockers)
{
    const struct gate_connection connection = *gate_connection(runner->settings.gate, at);
    int32_t pids[SHOP_BLOCKERS_MAX];
    size_t count = 0;
    bool asked = true, waits = false;
    gate_unlock(runner->settings.gate);
    if (connection.server == RUNS_POSTGRES)
        asked = shop_database_blockers(runner->settings.database, connection.pid, pids, &count);
    else if (connection.may_wait)
        asked = redis_control_waits(runner->settings.redis, connection.port, &waits);
    gate_lock(runner->settings.gate);
    *ret_blockers = waits ? RUN_WAITS_FOR_COMMAND : 0;
    for (size_t i = 0; i < count; i++) {
        int actor = actor_of_pid(runner, pids[i]);
        *ret_blockers |= actor == GATE_NO_OWNER ? RUN_WAITS_FOR_OTHERS : 1U << (unsigned)actor;
    }
    return asked;
}

static bool another_is_inside(const struct request_runner *runner, const struct actor *actor)
{
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (&runner->actors[i] != actor && runner->actors[i].state == REQUEST_INSIDE)
            return true;
    return false;
}

bool runner_is_late(const struct request_runner *runner, const struct gate_connection *connection)
{
    return connection->used && connection->transaction != 'I' && connection->owner != GATE_NO_OWNER &&
           connection->owner < ACTORS_MAX && runner->actors[connection->owner].ended;
}

/* Requests can answer first, and then end a transaction. A rollback changes nothing, so it passes; what comes before a commit would run while
 * the gate lets another request run. False, having said so on stderr. */
static bool pass_late(struct request_runner *runner)
{
    struct gate *gate = runner->settings.gate;
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(gate, i);
        if (!connection->held || !runner_is_late(runner, connection))
            continue;
        const struct actor *actor = &runner->actors[connection->owner];
        if (actor->crashed) {
            gate_refuse(gate, i);
        } else if (connection->trivial ||
                   strncasecmp(connection->text, "ROLLBACK", strlen("ROLLBACK")) == 0) {
            gate_release(gate, i);
            idle_polls_changed(&runner->polls); /* locks are free */
        } else {
            complain(
                "request %c sent '%.150s' after its answer. Let the service finish its transaction before it answers, and turn "
                "off what it does in the background",
                'A' + (char)actor->number, connection->text);
            return false;
        }
    }
    return true;
}

bool runner_await_transactions(struct request_runner *runner)
{
    int64_t until = monotonic_us() + (runner->quiet_us > 0 ? runner->quiet_us : QUIET_LEAST_US);
    bool is_open = true;
    while (is_open && monotonic_us() < until && !interrupted()) {
        if (!pass_late(runner))
            return false;
        is_open = false;
        for (size_t i = 0; i < GATE_CONNECTIONS; i++)
            is_open |= runner_is_late(runner, gate_connection(runner->settings.gate, i));
        if (is_open)
            gate_wait(runner->settings.gate, until);
    }
    return true;
}

/* The connection over which ACTOR's next statement has come; NOWHERE. Trivial statements pass. If another request waits in the program, a
 * statement outside a transaction may be that one's: it counts as ACTOR's only if ACTOR is QUIET and has not ended. */
static size_t find_held(struct request_runner *runner, struct actor *actor, bool quiet)
{
    bool is_unclear = !quiet && another_is_inside(runner, actor);
    struct gate *gate = runner->settings.gate;
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        struct gate_connection *connection = gate_connection(gate, i);
        if (!connection->used || !connection->held)
            continue;
        if (runner_is_taken(runner, actor, i) || !runner_may_send(runner, actor, connection) ||
            runner_is_late(runner, connection) || (is_unclear && connection->transaction == 'I'))
            continue;
        runner_note_stranger(runner, actor, connection);
        connection->owner = (int)actor->number;
        if (actor->crashed)
            gate_refuse(gate, i);
        else if (connection->trivial)
            gate_release(gate, i);
        else
            return i;
    }
    return NOWHERE;
}

/* The connection on which a statement of ACTOR runs. */
static size_t find_running(struct request_runner *runner, const struct actor *actor)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(runner->settings.gate, i);
        if (connection->used && connection->running && connection->owner == (int)actor->number)
            return i;
    }
    return NOWHERE;
}

/* The program opens a connection, so it is not silent, however long PostgreSQL takes. */
static bool a_connection_starts(const struct request_runner *runner)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        if (gate_connection(runner->settings.gate, i)->starts)
            return true;
    return false;
}

static bool has_come_to_rest(struct request_runner *runner, struct actor *actor, bool quiet)
{
    if (actor->ended) {
        actor->state = REQUEST_ENDED;
        actor->at = NOWHERE;
        return true;
    }
    /* Of several statements one runs; the next one is chosen when that has ended. */
    if (*runner->at_once && find_running(runner, actor) != NOWHERE)
        return false;
    actor->at = find_held(runner, actor, quiet);
    actor->state = REQUEST_HELD;
    return actor->at != NOWHERE;
}

/* Requests can share a connection to Redis, where commands keep their sequence. Then that of one is queued behind the one at which another is
 * held. False, having said so on stderr, or that the gate cannot hold what comes, or that it comes too late. */
static bool can_be_held(struct request_runner *runner, const struct actor *actor)
{
    const char *problem = gate_problem(runner->settings.gate);
    if (problem)
        complain("%s", problem);
    for (size_t i = 0; i < runner->settings.requests && !problem; i++) {
        const struct actor *other = &runner->actors[i];
        if (other == actor || other->state != REQUEST_HELD || other->at == NOWHERE)
            continue;
        const struct gate_connection *connection = gate_connection(runner->settings.gate, other->at);
        if (connection->server != RUNS_REDIS || connection->queued <= other->queued)
            continue;
        complain(
            "requests %c and %c share a connection to Redis, so the gate cannot hold one of them alone. Start an "
            "instance for each request with --instances, or give each request a connection",
            'A' + (char)other->number, 'A' + (char)actor->number);
        return false;
    }
    return !problem && pass_late(runner);
}

static void note_queues(struct request_runner *runner)
{
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].at != NOWHERE)
            runner->actors[i].queued = gate_connection(runner->settings.gate, runner->actors[i].at)->queued;
}

/* ACTOR has come to rest after a SILENCE, in microseconds. */
static void note_rest(struct request_runner *runner, struct actor *actor, int64_t silence)
{
    runner->silence_us = silence > runner->silence_us ? silence : runner->silence_us;
    if (runner->watches && actor->state == REQUEST_HELD)
        runner_watch_actor(runner, actor);
    if (*runner->at_once && actor->state == REQUEST_HELD && !actor->crashed)
        runner_choose_one(runner, actor);
}

/* A SILENCE, in microseconds, after which ACTOR counts as waiting in the program, or in the queue of its pool. */
static bool is_long(const struct request_runner *runner, const struct actor *actor, int64_t silence)
{
    return (runner->quiet_us > 0 && silence > runner->quiet_us) ||
           (actor->sent > 0 && silence > QUEUE_US && runner_pool_is_busy(runner, actor));
}

/* A slow program, or one that gets no processor, may be about to send a statement. The gate's lock is not held meanwhile. */
static bool program_works(const struct request_runner *runner)
{
    const struct shop_service *service = runner->settings.service;
    bool works = false;
    gate_unlock(runner->settings.gate);
    for (size_t i = 0; i < service->count && !works; i++)
        works = service->process[i].pid > 0 && processes_work(service->process[i].pid);
    gate_lock(runner->settings.gate);
    return works;
}

/* How long a request may run until it comes to rest, in microseconds. */
static int64_t time_of(const struct request_runner *runner)
{
    return runner->settings.service->description->timeout_ms * 1000 + STUCK_US;
}

/* The program works, and may for a part of that time since the monotonic time SINCE, when the gate saw its request last. One that works
 * longer waits without a pause, so from then on its work says nothing. */
static bool may_work_on(struct request_runner *runner, int64_t since)
{
    const int64_t half = time_of(runner) / 2, most = WORK_TIMES * runner->quiet_us;
    if (runner->spins || !program_works(runner))
        return false;
    runner->spins = monotonic_us() - since > (most < half ? most : half);
    return !runner->spins;
}

/* Says that ACTOR has taken longer, unless an interrupt ended the wait. Returns false. */
static bool took_too_long(const struct request_runner *runner, const struct actor *actor)
{
    if (!interrupted())
        shop_complain(runner->settings.service->description, "timeout_ms",
                      "is %" PRId64
                      ", and request %c has neither sent a statement nor ended in that time. Raise it",
                      runner->settings.service->description->timeout_ms, 'A' + (char)actor->number);
    return false;
}

/* With the gate's lock: waits until the actor, which runs, has come to rest. */
bool runner_settle(struct request_runner *runner, struct actor *actor)
{
    struct gate *gate = runner->settings.gate;
    int64_t begin = monotonic_us(), end = begin + time_of(runner), silent_since = begin, unseen_since = begin;
    actor->at = NOWHERE;
    actor->blockers = 0;
    note_queues(runner);
    while (!interrupted() && monotonic_us() < end) {
        if (!can_be_held(runner, actor))
            return false;
        if (has_come_to_rest(runner, actor, false)) {
            note_rest(runner, actor, monotonic_us() - silent_since);
            return !actor->failed;
        }
        size_t running = find_running(runner, actor);
        if (actor->cuts && running != NOWHERE && gate_connection(gate, running)->has_answers) {
            gate_close_connection(gate, running);
            actor->cuts = false;
            continue;
        }
        if (a_connection_starts(runner))
            silent_since = unseen_since = monotonic_us();
        gate_wait(gate, monotonic_us() + LOOK_US);
        if (has_come_to_rest(runner, actor, false))
            continue;
        if (running != NOWHERE && find_running(runner, actor) == running) {
            silent_since = unseen_since = monotonic_us();
            if (monotonic_us() - begin < LOOK_US)
                continue;
            if (!ask_blockers(runner, running, &actor->blockers))
                return false;
            if (actor->blockers == 0 || find_running(runner, actor) != running)
                continue;
            gate_connection(gate, running)->keep_answers = true;
            /* It may have gone on since the question: then its answer is kept, and it counts as blocked until its turn. */
            actor->at = running;
            actor->state = REQUEST_BLOCKED;
            return true;
        }
        if (is_long(runner, actor, monotonic_us() - silent_since)) {
            if (may_work_on(runner, unseen_since)) {
                silent_since = monotonic_us();
                continue;
            }
            if (!has_come_to_rest(runner, actor, true)) {
                if (find_running(runner, actor) != NOWHERE) { /* what it sent has passed at once */
                    silent_since = unseen_since = monotonic_us();
                    continue;
                }
                actor->state = REQUEST_INSIDE;
            }
            return true;
        }
    }
    return took_too_long(runner, actor);
}

/* Waits until the statement of ACTOR, which was blocked, has ended or waits for something again. */
static bool await_unblocked(struct request_runner *runner, struct actor *actor)
{
    const int64_t end = monotonic_us() + time_of(runner);
    struct gate *gate = runner->settings.gate;
    const size_t at = actor->at;
    while (!gate_connection(gate, at)->has_answers && gate_connection(gate, at)->used) {
        if (interrupted() || monotonic_us() > end)
            return took_too_long(runner, actor);
        if (!ask_blockers(runner, at, &actor->blockers))
            return false;
        if (actor->blockers != 0)
            break;
        gate_wait(gate, monotonic_us() + LOOK_US);
    }
    return true;
}

/* Lets those go on that waited for what has just run. True in *RET_WENT if one did. */
static bool wake_waiters(struct request_runner *runner, bool *ret_went)
{
    struct gate *gate = runner->settings.gate;
    *ret_went = false;
    if (!pass_late(runner))
        return false;
    for (size_t i = 0; i < runner->settings.requests; i++) {
        struct actor *actor = &runner->actors[i];
        if (actor->state == REQUEST_BLOCKED) {
            size_t at = actor->at;
            if (!await_unblocked(runner, actor))
                return false;
            if (gate_connection(gate, at)->used && !gate_connection(gate, at)->has_answers)
                continue;
            if (gate_connection(gate, at)->server == RUNS_REDIS)
                idle_repeats_changed(&runner->repeats);
            if (!actor->cuts)
                gate_release_answers(gate, at);
        } else if (actor->state != REQUEST_INSIDE) {
            continue;
        }
        enum request_state before = actor->state;
        size_t at = actor->at;
        const int32_t pid = at == NOWHERE ? 0 : gate_connection(gate, at)->pid;
        if (!runner_settle(runner, actor))
            return false;
        if (before == REQUEST_BLOCKED && actor->state != REQUEST_BLOCKED)
            runner_note_unblocked(runner, actor, at, pid);
        if (actor->waits && actor->state != REQUEST_BLOCKED) {
            snprintf(actor->waits->answer, sizeof actor->waits->answer, "%s",
                     gate_connection(gate, at)->answer);
            actor->waits = NULL;
        }
        *ret_went |= before != actor->state;
    }
    return true;
}

bool runner_wake_waiters(struct request_runner *runner)
{
    bool went = true;
    while (went)
        if (!wake_waiters(runner, &went))
            return false;
    return true;
}

/* A request can send its next statement, and does not poll. */
static bool can_step(const struct request_runner *runner)
{
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].state == REQUEST_HELD && !runner_polls(runner, &runner->actors[i]))
            return true;
    return false;
}

bool runner_has(const struct request_runner *runner, enum request_state state)
{
    for (size_t i = 0; i < runner->settings.requests; i++)
        if (runner->actors[i].state == state)
            return true;
    return false;
}

unsigned runner_inside(const struct request_runner *runner)
{
    unsigned inside = 0;
    for (unsigned i = 0; i < runner->settings.requests; i++)
        inside |= runner->actors[i].state == REQUEST_INSIDE && !runner->actors[i].crashed ? 1U << i : 0;
    return inside;
}

/* Sleeping requests and deadlocks, which PostgreSQL ends after its deadlock_timeout, look like stuck ones for some time. */
bool runner_await_deadlock(struct request_runner *runner)
{
    int64_t end = monotonic_us() + STUCK_US;
    unsigned inside;
    while (!can_step(runner) && ((inside = runner_inside(runner)) || runner_has(runner, REQUEST_BLOCKED)) &&
           monotonic_us() < end && !interrupted()) {
        bool only_inside = !runner_has(runner, REQUEST_BLOCKED);
        gate_wait(runner->settings.gate, monotonic_us() + LOOK_US);
        if (!runner_wake_waiters(runner))
            return false;
        runner->record.slept |= only_inside && runner_inside(runner) != inside;
    }
    return true;
}

bool runner_await_silent(struct request_runner *runner)
{
    int64_t end = monotonic_us() + STUCK_US;
    bool ok = true;
    gate_lock(runner->settings.gate);
    unsigned inside = runner_inside(runner);
    while (ok && runner_inside(runner) == inside && monotonic_us() < end && !interrupted()) {
        gate_wait(runner->settings.gate, monotonic_us() + LOOK_US);
        ok = runner_wake_waiters(runner);
    }
    runner->record.slept |= runner_inside(runner) != inside;
    gate_unlock(runner->settings.gate);
    return ok;
}
