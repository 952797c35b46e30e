/* The life of a schedule: a fresh state, the enabled transitions, and the end. How one transition runs is in
 * loadtest/explore/exec/execute_transition.c, how an execution opens in loadtest/explore/exec/open_execution.c. */
#include "loadtest/explore/exec/execution.h"
#include "base/clock.h"

#include "base/hash.h"
#include "loadtest/explore/exec/controlled_lock.h"
#include "loadtest/explore/exec/fault_transitions.h"
#include "loadtest/explore/exec/invariants.h"
#include "loadtest/explore/exec/lock_admin.h"
#include "loadtest/explore/exec/order_footprints.h"

#include <stdio.h>
#include <string.h>

enum { END_US = 30000000 }; /* an order that nobody holds ends long before */

/* ---- closing -------------------------------------------------------------------------------------------------- */

/* Holds nobody any longer: each order that has not ended runs to its end. With ONLY_BEGUN, orders that have not begun do not
 * begin. *RET_STUCK: one of them was waiting. False: an order does not end, and the execution is lost. */
static bool let_all_end(struct execution *execution, bool only_begun, bool *ret_stuck)
{
    int64_t until_us = monotonic_us() + END_US;
    bool ended = true;
    pthread_mutex_lock(&execution->trace.mutex);
    *ret_stuck = false;
    execution->trace.runs_free = true;
    for (size_t i = 0; i < execution->settings.actors; i++) {
        struct actor *actor = &execution->actors[i];
        *ret_stuck |= actor->state == ACTOR_WAITING || actor->state == ACTOR_RUNNING;
        if ((actor->state == ACTOR_HELD || actor->state == ACTOR_WAITING) &&
            (actor->is_placing || !only_begun))
            actor_release(actor);
    }
    for (size_t i = 0; i < execution->settings.actors; i++)
        while (ended && (execution->actors[i].is_placing || !only_begun) &&
               execution->actors[i].state != ACTOR_ENDED && execution->actors[i].state != ACTOR_CRASHED)
            ended = trace_wait(&execution->trace, until_us);
    pthread_mutex_unlock(&execution->trace.mutex);
    if (!ended)
        execution->lost = execution->schema->lost = true;
    return ended;
}

/* Lets the held orders of an aborted schedule finish. */
static bool end_what_has_begun(struct execution *execution)
{
    bool begun = false, stuck;
    pthread_mutex_lock(&execution->trace.mutex);
    for (size_t i = 0; i < execution->settings.actors; i++)
        begun |= execution->actors[i].is_placing;
    pthread_mutex_unlock(&execution->trace.mutex);
    return !execution->lost && (!begun || let_all_end(execution, true, &stuck));
}

void execution_close(struct execution *execution)
{
    if (!end_what_has_begun(execution))
        return;
    for (size_t i = 0; i < execution->settings.actors; i++) {
        actor_close(&execution->actors[i]);
        controlled_lock_close(&execution->actors[i]);
    }
    trace_destroy(&execution->trace);
    lock_close(execution->lock_admin);
    execution->lock_admin = NULL;
    execution->settings.actors = 0;
}

/* The number of the last order's process. It is never used again, because a lock's gate in this process (lock/process_gate.h)
 * remembers a holder that died until its lease ends, whatever execution it was in. */
static unsigned last_process;

bool execution_start(void *self)
{
    struct execution *execution = self;
    const struct stock_policy *policy = execution->settings.strategy->take_stock;
    if (!end_what_has_begun(execution))
        return execution_fail(execution, "an order does not finish");
    if (!product_schema_reset(execution->schema, policy->kind, execution->settings.stock))
        return execution_database_error(execution);
    for (size_t i = 0; i < ACTORS_MAX; i++)
        if (execution->trace.recorders[i])
            recorder_clear(execution->trace.recorders[i]);
    execution->before_count = execution->trace.event_count;
    memcpy(execution->before, execution->trace.events, execution->before_count * sizeof execution->before[0]);
    execution->trace.event_count = 0;
    execution->trace.runs_free = false;
    execution->transition_count = 0;
    execution->deadlock = execution->fault_made = false;
    execution->ending = (struct ending){0};
    execution->fails_alone = false;
    execution->restarts = 0;
    order_footprints_begin(execution);
    for (size_t i = 0; i < execution->settings.actors; i++) {
        struct actor *actor = &execution->actors[i];
        if (!controlled_lock_open(actor, execution->settings.strategy,
                                  execution->own_processes ? &last_process : NULL, execution->error,
                                  sizeof execution->error) ||
            !actor_prepare(actor, execution->settings.strategy, execution->schema->product_id,
                           execution->settings.quantities[i], execution->error, sizeof execution->error))
            return false;
    }
    return true;
}

/* ---- enabled transitions --------------------------------------------------------------------------------------- */

static bool has_begun(const struct execution *execution, size_t actor)
{
    for (size_t i = 0; i < execution->transition_count; i++)
        if (execution->transitions[i].actor == actor)
            return true;
    return false;
}

size_t execution_enabled(void *self, struct transition *ret_transitions)
{
    struct execution *execution = self;
    size_t count = 0;
    pthread_mutex_lock(&execution->trace.mutex);
    for (size_t i = 0; i < execution->settings.actors; i++) {
        const struct actor *actor = &execution->actors[i];
        if (execution->settings.alike && i > 0 && !has_begun(execution, i - 1))
            break;
        if (actor->state == ACTOR_HELD || (actor->state == ACTOR_WAITING && actor->may_try))
            ret_transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_STEP};
    }
    if (execution->settings.faults)
        count = faults_enabled(execution, ret_transitions, count);
    pthread_mutex_unlock(&execution->trace.mutex);
    return count;
}

/* Has the actor done it itself, and not a fault or the server? */
static bool is_its_own(const struct event *event)
{
    return (event->what < STEP_COUNT && event->what != STEP_WAIT) || event->what == EVENT_RETRY ||
           event->what == EVENT_ENDED || event->what == EVENT_CRASHED;
}

uint8_t execution_next_step(const struct execution *execution, unsigned actor, size_t events)
{
    const struct event *event = execution->trace.events + events;
    while (event > execution->trace.events) {
        event--;
        if (event->actor != actor || !is_its_own(event))
            continue;
        /* Takes the first of two equal steps; no strategy has two. */
        for (size_t i = 0; event->what < STEP_COUNT && i + 1 < execution->profile_length; i++)
            if (execution->profile[i] == event->what)
                return execution->profile[i + 1];
        if (event->what != EVENT_RETRY)
            return STEP_COUNT;
        break;
    }
    return execution->profile_length > 0 ? execution->profile[0] : STEP_COUNT;
}

size_t execution_remaining(void *self, unsigned actor)
{
    struct execution *execution = self;
    uint8_t next = execution_next_step(execution, actor, execution->trace.event_count);
    size_t done = 0;
    while (done < execution->profile_length && execution->profile[done] != next)
        done++;
    return execution->profile_length - done;
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

bool execution_read_stock(struct execution *execution, int64_t *ret_stock)
{
    struct product_audit audit;
    if (!product_schema_audit(execution->schema, &audit))
        return execution_database_error(execution);
    *ret_stock = audit.left;
    return true;
}

/* Releases a lock that an order leaked, because it would block every further schedule. */
static bool forget_leftovers(struct execution *execution, struct actor *actor)
{
    bool ok = true;
    pthread_mutex_lock(&execution->trace.mutex);
    bool leaked = actor->state == ACTOR_ENDED && actor->hold.depth > 0;
    if (leaked && !actor->lock->driver->server) /* only its own thread can release a mutex */
        ok = actor_crash(actor, execution->schema);
    pthread_mutex_unlock(&execution->trace.mutex);
    while (actor->lock && actor->hold.depth > 0) {
        struct lock_grant grant = actor->hold.grant;
        (void)lock_release(actor->lock, &grant);
    }
    execution->ending.leaked |= leaked;
    return ok;
}

bool execution_end(void *self)
{
    struct execution *execution = self;
    size_t events = execution->trace.event_count;
    bool stuck;
    if (execution->lost || !let_all_end(execution, false, &stuck))
        return execution_fail(execution, "an order does not finish");
    execution->ending.deadlock = execution->deadlock;
    execution->ending.stuck = stuck;
    for (size_t i = 0; i < execution->settings.actors; i++)
        if (!forget_leftovers(execution, &execution->actors[i]))
            return execution_database_error(execution);
    execution->trace.event_count =
        events; /* what they did when nobody held them is no part of the schedule */
    for (size_t i = 0; i < execution->settings.actors; i++) {
        bool crashed = execution_has_reported(execution, i, EVENT_CRASHED);
        execution->ending.outcomes[i] = crashed ? ORDER_UNKNOWN : execution->actors[i].placing.result.outcome;
        if (crashed)
            lock_admin_clean_up(execution->settings.strategy->lock, execution->lock_admin,
                                &execution->actors[i].hold);
    }
    if (!product_schema_audit(execution->schema, &execution->ending.audit))
        return execution_database_error(execution);
    invariants_check_end(execution);
    return true;
}

void execution_footprint(void *self, struct footprint *ret_footprint)
{
    *ret_footprint = ((const struct execution *)self)->footprint;
}

uint64_t execution_fingerprint(void *self)
{
    const struct execution *execution = self;
    uint64_t sum = HASH_OF_NOTHING;
    for (size_t i = 0; i < execution->trace.event_count; i++) {
        const struct event *event = &execution->trace.events[i];
        bool is_token = event->what == STEP_LOCK || event->what == STEP_FENCE || event->what == STEP_REFUSE;
        sum = hash_add_number(sum, (uint64_t)event->actor << 8 | event->what);
        sum = hash_add_number(sum, is_token ? 0 : (uint64_t)event->value);
    }
    return sum;
}

bool execution_is_doubtful(void *self)
{
    enum { RUN_AGAIN = 2 };
    struct execution *execution = self;
    bool unexpected = execution->ending.failed ||
                      (execution->ending.stuck &&
                       execution->settings.strategy->guarantee != GUARANTEE_UNSAFE);
    if (unexpected && execution->doubts++ < RUN_AGAIN)
        return true;
    execution->doubts = 0;
    return false;
}
