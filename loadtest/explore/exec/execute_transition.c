/* Running one transition: the controller releases an actor (or makes a fault happen) and waits until every actor is held at a
 * step, has ended, or is known to be blocked by another in PostgreSQL. Only then are the next enabled transitions the same
 * in every run. PostgreSQL's deadlock check depends on time; a transition whose victim it made depend on that is repeated. */
#include "base/clock.h"
#include "loadtest/explore/exec/fault_transitions.h"
#include "loadtest/explore/exec/invariants.h"
#include "loadtest/explore/exec/order_footprints.h"
#include "loadtest/search/waits.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOK_US = 700, /* an actor that takes longer may be blocked: PostgreSQL is asked */
    /* By then a blocked session has usually checked for a deadlock. Most strategies have none, so nothing waits for that before one was late;
     * then the wait is doubled up to LATE_MAX times. */
    DEADLOCK_US = 4000,
    LATE_MAX = 5,
    PATIENCE_US = 20000000, /* a safety limit; normally never reached */
};

static size_t count_running(const struct execution *execution, bool also_waiting)
{
    size_t count = 0;
    for (size_t i = 0; i < execution->settings.actors; i++)
        count += execution->actors[i].state == ACTOR_RUNNING &&
                 (also_waiting || !execution->actors[i].waits_for);
    return count;
}

/* Asks PostgreSQL which running actors are blocked, and by whom. The mutex is held, except while it asks. */
static bool look_who_waits(struct execution *execution, bool *ret_new)
{
    const char *pids[ACTORS_MAX];
    bool asked_for[ACTORS_MAX] = {0};
    unsigned waits_for[ACTORS_MAX];
    for (size_t i = 0; i < execution->settings.actors; i++) {
        asked_for[i] = execution->actors[i].state == ACTOR_RUNNING;
        pids[i] = actor_session(&execution->actors[i]);
    }
    pthread_mutex_unlock(&execution->trace.mutex);
    bool asked = product_schema_blocked_sessions(execution->schema, pids, execution->settings.actors,
                                                 waits_for);
    pthread_mutex_lock(&execution->trace.mutex);
    for (size_t i = 0; asked && i < execution->settings.actors; i++)
        if (asked_for[i] && execution->actors[i].state == ACTOR_RUNNING) {
            if (waits_for[i] && !execution->actors[i].waits_for) {
                trace_event(&execution->trace, (uint8_t)i, EVENT_WAITS, waits_for[i]);
                *ret_new = true;
            }
            execution->actors[i].waits_for = waits_for[i];
        }
    return asked || execution_database_error(execution);
}

static bool is_deadlock(const struct execution *execution)
{
    uint32_t waits_for[ACTORS_MAX];
    for (size_t i = 0; i < execution->settings.actors; i++)
        waits_for[i] = execution->actors[i].waits_for;
    return waits_have_circle(waits_for, execution->settings.actors);
}

/* Waits until no actor runs that is not blocked. The mutex is held. */
static bool settle(struct execution *execution)
{
    int64_t until_us = monotonic_us() + PATIENCE_US;
    bool somebody_new = false;
    while (count_running(execution, true) > 0) {
        if (count_running(execution, false) > 0 && trace_wait(&execution->trace, monotonic_us() + LOOK_US))
            continue;
        uint64_t stops = execution->trace.stops;
        if (!look_who_waits(execution, &somebody_new))
            return false;
        if (stops != execution->trace.stops) /* an actor has stopped meanwhile: the answer is out of date */
            continue;
        if (count_running(execution, false) == 0 && is_deadlock(execution)) {
            execution->deadlock = true; /* PostgreSQL finds it too, and rolls one back */
            (void)trace_wait(&execution->trace, monotonic_us() + PATIENCE_US);
        } else if (count_running(execution, false) == 0 && somebody_new && execution->deadlock_wait_us > 0) {
            somebody_new = false;
            (void)trace_wait(&execution->trace, monotonic_us() + execution->deadlock_wait_us);
        } else if (count_running(execution, false) == 0) {
            return true;
        }
        if (monotonic_us() > until_us) {
            execution->patience_used++;
            return execution_fail(execution, "an order takes longer than %d s for a step",
                                  PATIENCE_US / 1000000);
        }
    }
    return true;
}

static bool is_victim(const struct execution *execution, const struct event *event)
{
    return (event->what == EVENT_RETRY || event->what == EVENT_ENDED) &&
           strstr(execution->actors[event->actor].placing.result.error, "deadlock detected");
}

/* Was the deadlock's victim an actor that already waited before this transition (BEFORE: bits)? A session checks for a deadlock
 * once, deadlock_timeout after it began to wait. That check came too late, after another actor had closed the cycle. */
static bool is_late_victim(const struct execution *execution, size_t since, unsigned before)
{
    for (size_t i = since; i < execution->trace.event_count; i++) {
        const struct event *event = &execution->trace.events[i];
        if (before & 1u << event->actor && is_victim(execution, event))
            return true;
        before &= ~(1u << event->actor); /* its next wait is a new one */
    }
    return false;
}

/* PostgreSQL may find the cycle before the controller does, so the victim's wait is never reported: otherwise traces differ. */
static void note_deadlocks(struct execution *execution, size_t since)
{
    struct event *events = execution->trace.events;
    for (size_t i = since; i < execution->trace.event_count; i++) {
        if (!is_victim(execution, &events[i]))
            continue;
        uint8_t victim = events[i].actor;
        size_t kept = since;
        for (size_t j = since; j < execution->trace.event_count; j++)
            if (events[j].actor != victim || events[j].what != EVENT_WAITS)
                events[kept++] = events[j];
        execution->trace.event_count = kept;
        execution->deadlock = true;
        return;
    }
}

static bool may_free_a_lock(const struct event *event)
{
    switch (event->what) {
    case STEP_UNLOCK:
    case STEP_DEL:
    case EVENT_ENDED:
    case EVENT_EXPIRED:
    case EVENT_RESTARTED:
    case EVENT_LOCK_STOLEN:
    case EVENT_CRASHED: return true;
    default: return false;
    }
}

/* An actor that found the lock taken may try again after an event that may have freed it. One that sleeps in the lock's queue
 * may continue only when the event that it waits for has happened. */
static void let_try_again(struct execution *execution, size_t since)
{
    for (size_t i = since; i < execution->trace.event_count; i++)
        for (size_t j = 0; may_free_a_lock(&execution->trace.events[i]) && j < execution->settings.actors;
             j++)
            execution->actors[j].may_try |= execution->trace.events[i].actor != j;
    for (size_t j = 0; j < execution->settings.actors; j++) {
        struct actor *actor = &execution->actors[j];
        if (actor->state == ACTOR_WAITING && actor->sleeps && actor->may_try)
            actor->may_try = actor->has_ended && actor->has_ended(actor->context);
    }
}

/* If several actors continue at once, chance decides who reports first. So events are sorted, the acting actor's first. */
static void put_in_order(struct execution *execution, size_t since, unsigned acting)
{
    struct event events[EVENTS_MAX];
    size_t count = execution->trace.event_count - since, placed = since;
    memcpy(events, execution->trace.events + since, count * sizeof events[0]);
    for (unsigned turn = 0; turn < ACTORS_MAX; turn++)
        for (size_t i = 0; i < count; i++)
            if (events[i].actor == (acting + turn) % ACTORS_MAX)
                execution->trace.events[placed++] = events[i];
}

static unsigned who_waits_in_postgresql(const struct execution *execution)
{
    unsigned waiting = 0;
    for (size_t i = 0; i < execution->settings.actors; i++)
        if (execution->actors[i].state == ACTOR_RUNNING && execution->actors[i].waits_for)
            waiting |= 1u << i;
    return waiting;
}

/* Runs one transition. *RET_LATE: PostgreSQL's choice of a deadlock's victim depended on timing. */
static bool apply_transition(struct execution *execution, struct transition transition, bool *ret_late)
{
    size_t since;
    bool made = true;
    *ret_late = false;
    if (execution->transition_count == DEPTH_MAX)
        return execution_fail(execution, "a schedule did not end");
    pthread_mutex_lock(&execution->trace.mutex);
    since = execution->trace.event_count;
    unsigned waiting = who_waits_in_postgresql(execution);
    if (transition.kind == TRANSITION_STEP)
        actor_release(&execution->actors[transition.actor]);
    else
        made = fault_make(execution, transition);
    bool settled = made && settle(execution);
    *ret_late = settled && is_late_victim(execution, since, waiting);
    note_deadlocks(execution, since);
    settled = settled && invariants_check(execution, since);
    let_try_again(execution, since);
    put_in_order(execution, since, transition.actor);
    order_footprints_note(execution, transition, since);
    execution->transitions[execution->transition_count] = transition;
    execution->transition_ends[execution->transition_count++] = execution->trace.event_count;
    pthread_mutex_unlock(&execution->trace.mutex);
    return settled;
}

/* Runs the first COUNT transitions again, from a fresh state. */
static bool apply_again(struct execution *execution, size_t count)
{
    struct transition transitions[DEPTH_MAX];
    bool late;
    memcpy(transitions, execution->transitions, count * sizeof transitions[0]);
    bool made = execution_end(execution) && execution_start(execution);
    for (size_t i = 0; i < count && made; i++)
        made = apply_transition(execution, transitions[i], &late);
    return made;
}

bool execution_apply(void *self, struct transition transition)
{
    struct execution *execution = self;
    size_t count = execution->transition_count;
    bool late, made = apply_transition(execution, transition, &late);
    /* In every run the victim must be the actor that closes the cycle. So the schedule starts again with longer waits. */
    for (int tries = 0; made && late && tries < LATE_MAX; tries++) {
        const int64_t at_least_us = execution->schema->deadlock_timeout_us + DEADLOCK_US;
        execution->deadlock_wait_us = execution->deadlock_wait_us < at_least_us
                                          ? at_least_us
                                          : execution->deadlock_wait_us * 2;
        made = apply_again(execution, count) && apply_transition(execution, transition, &late);
    }
    return made;
}
