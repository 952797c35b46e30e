/* Fault transitions: which faults may happen to an order or to its lock, and making one happen. */
#include "loadtest/explore/exec/fault_transitions.h"
#include "base/clock.h"

#include "loadtest/explore/exec/controlled_lock.h"
#include "loadtest/explore/exec/lock_admin.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- enabled faults ------------------------------------------------------------------------------------------- */

static bool has_begun(const struct execution *execution, size_t actor)
{
    for (size_t i = 0; i < execution->trace.event_count; i++)
        if (execution->trace.events[i].actor == actor && execution->trace.events[i].what != EVENT_CUT)
            return true;
    return false;
}

static bool lock_can_end(const struct execution *execution, const struct actor *actor)
{
    return actor->hold.has_grant && !actor->hold.is_over &&
           lock_admin_can_expire(execution->settings.strategy->lock);
}

static bool can_expire(const struct execution *execution, const struct actor *actor)
{
    bool is_there = actor->state != ACTOR_CRASHED || execution->settings.follows_script;
    return is_there && execution->settings.faults & SHOWN_BY_EXPIRY && lock_can_end(execution, actor);
}

static bool can_crash(const struct execution *execution, const struct actor *actor)
{
    bool is_there = actor->state != ACTOR_ENDED && actor->state != ACTOR_CRASHED;
    return execution->settings.faults & SHOWN_BY_CRASH && is_there && has_begun(execution, actor->index);
}

static bool can_be_cut(const struct execution *execution, const struct actor *actor)
{
    char *servers = has_begun(execution, actor->index)
                        ? NULL
                        : lock_admin_cut_servers(execution->settings.strategy->lock, actor->cuts + 1);
    free(servers);
    return servers;
}

static bool is_waiting(const struct actor *actor)
{
    return actor->state == ACTOR_WAITING || (actor->state == ACTOR_RUNNING && actor->waits_for);
}

static bool somebody_waits(const struct execution *execution)
{
    for (size_t i = 0; i < execution->settings.actors; i++)
        if (execution->actors[i].state == ACTOR_WAITING)
            return true;
    return false;
}

/* If no actor can continue, time passes: the leases of crashed actors end. */
static size_t let_time_go_by(const struct execution *execution, struct transition *ret_transitions)
{
    size_t count = 0;
    for (size_t i = 0; i < execution->settings.actors && somebody_waits(execution); i++)
        if (execution->actors[i].state == ACTOR_CRASHED && lock_can_end(execution, &execution->actors[i]))
            ret_transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_EXPIRE};
    return count;
}

size_t faults_enabled(const struct execution *execution, struct transition *transitions, size_t steps)
{
    size_t count = steps;
    if (!execution->fault_made || execution->settings.follows_script)
        for (size_t i = 0; i < execution->settings.actors; i++) {
            if (can_expire(execution, &execution->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_EXPIRE};
            if (execution->settings.follows_script && lock_can_end(execution, &execution->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_RESTART};
            if ((execution->settings.follows_script || execution->settings.faults & WAITS_END) &&
                is_waiting(&execution->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_TIMEOUT};
            if (execution->settings.follows_script && can_be_cut(execution, &execution->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_CUT};
            if (can_crash(execution, &execution->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_CRASH};
        }
    return count > 0 ? count : let_time_go_by(execution, transitions);
}

/* ---- making a fault ---------------------------------------------------------------------------------------------- */

static bool expire(struct execution *execution, struct actor *actor)
{
    enum lock_status status = lock_admin_expire(execution->settings.strategy->lock, execution->lock_admin,
                                                execution->schema, &actor->hold);
    if (status != LOCK_OK && status != LOCK_LOST)
        return execution_fail(execution, "a lock cannot be ended: %s: %s", lock_status_name(status),
                              execution->lock_admin ? execution->lock_admin->error
                                                    : execution->schema->error);
    /* If nothing ended, no waiter has a reason to try again; and a crashed actor's lock is gone for good. */
    actor->hold.is_over |= status == LOCK_OK || actor->state == ACTOR_CRASHED;
    if (status == LOCK_OK)
        trace_event(&execution->trace, actor->index, EVENT_EXPIRED, actor->hold.is_place);
    return true;
}

/* Waits until an actor whose wait in PostgreSQL was cut short has come to its next stop. */
static bool await_stop(struct execution *execution, const struct actor *actor)
{
    enum { PATIENCE_US = 20 * 1000 * 1000 };
    int64_t until_us = monotonic_us() + PATIENCE_US;
    bool ok = true;
    while (ok && actor->state == ACTOR_RUNNING)
        ok = trace_wait(&execution->trace, until_us);
    return ok;
}

static bool time_out(struct execution *execution, struct actor *actor)
{
    trace_event(&execution->trace, actor->index, EVENT_TIMED_OUT, STEP_NO_VALUE);
    if (actor->state == ACTOR_WAITING) {
        actor->times_out = true;
        actor_release(actor);
        return true;
    }
    pthread_mutex_unlock(&execution->trace.mutex);
    bool ok = product_schema_cancel(execution->schema, actor_session(actor));
    pthread_mutex_lock(&execution->trace.mutex);
    ok = ok && await_stop(execution, actor);
    return ok || execution_database_error(execution);
}

/* An actor that is blocked in PostgreSQL is not held at a step: first its session is ended, then its thread, as soon as it
 * tries to do anything but handle the error. */
static bool crash_one(struct execution *execution, struct actor *actor)
{
    bool ok = true;
    if (actor->state == ACTOR_RUNNING) {
        actor->dies = true;
        pthread_mutex_unlock(&execution->trace.mutex);
        ok = product_schema_end_session(execution->schema, actor_session(actor));
        pthread_mutex_lock(&execution->trace.mutex);
        ok = ok && await_stop(execution, actor);
    }
    ok = ok && actor_crash(actor, execution->schema);
    trace_event(&execution->trace, actor->index, EVENT_CRASHED, STEP_NO_VALUE);
    return ok || execution_database_error(execution);
}

/* Orders whose lock is in the memory of one process crash together. */
static bool crash(struct execution *execution, struct actor *actor)
{
    const struct lock_driver *lock = execution->settings.strategy->lock;
    bool ok = crash_one(execution, actor);
    for (size_t i = 0; i < execution->settings.actors && lock && !lock->server; i++) {
        struct actor *other = &execution->actors[i];
        if (other != actor && other->state != ACTOR_ENDED && other->state != ACTOR_CRASHED)
            ok = ok && crash_one(execution, other);
    }
    return ok;
}

static bool restart(struct execution *execution, struct actor *actor)
{
    if (!lock_admin_forget(execution->settings.strategy->lock, execution->restarts++, &actor->hold))
        return execution_fail(execution, "no further server of the lock can restart");
    actor->hold.is_over |= !lock_admin_is_held(execution->lock_admin, &actor->hold);
    trace_event(&execution->trace, actor->index, EVENT_RESTARTED,
                actor->hold.is_over ? RESTART_ENDED_LOCK : STEP_NO_VALUE);
    return true;
}

static bool cut(struct execution *execution, struct actor *actor)
{
    if (!controlled_lock_cut(actor))
        return execution_fail(execution, "a server cannot be made unreachable");
    trace_event(&execution->trace, actor->index, EVENT_CUT, STEP_NO_VALUE);
    return true;
}

bool fault_make(struct execution *execution, struct transition transition)
{
    struct actor *actor = &execution->actors[transition.actor];
    execution->fault_made = true;
    switch (transition.kind) {
    case TRANSITION_EXPIRE: return expire(execution, actor);
    case TRANSITION_RESTART: return restart(execution, actor);
    case TRANSITION_CUT: return cut(execution, actor);
    case TRANSITION_TIMEOUT: return time_out(execution, actor);
    default: return crash(execution, actor);
    }
}
