/* Faults as moves: what carries a lock ends, or an order dies; and what is watched because of them: who has the lock. */
#include "loadtest/explore/exec/fault_transitions.h"

#include "loadtest/explore/exec/lock_admin.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- what can happen ------------------------------------------------------------------------------------------ */

static bool has_begun(const struct play *play, size_t actor)
{
    for (size_t i = 0; i < play->scene.event_count; i++)
        if (play->scene.events[i].actor == actor && play->scene.events[i].what != EVENT_CUT)
            return true;
    return false;
}

static bool lock_can_end(const struct play *play, const struct actor *actor)
{
    return actor->hold.has_grant && !actor->hold.is_over && time_can_end(play->settings.strategy->lock);
}

static bool can_expire(const struct play *play, const struct actor *actor)
{
    bool is_there = actor->state != ACTOR_CRASHED || play->settings.follows_script;
    return is_there && play->settings.faults & EXPIRY && lock_can_end(play, actor);
}

static bool can_crash(const struct play *play, const struct actor *actor)
{
    bool is_there = actor->state != ACTOR_ENDED && actor->state != ACTOR_CRASHED;
    return play->settings.faults & CRASH && is_there && has_begun(play, actor->index);
}

static bool can_be_cut(const struct play *play, const struct actor *actor)
{
    char *servers = has_begun(play, actor->index)
                        ? NULL
                        : time_cut_servers(play->settings.strategy->lock, actor->cuts + 1);
    free(servers);
    return servers;
}

static bool is_waiting(const struct actor *actor)
{
    return actor->state == ACTOR_WAITING || (actor->state == ACTOR_RUNNING && actor->waits_for);
}

static bool somebody_waits(const struct play *play)
{
    for (size_t i = 0; i < play->settings.actors; i++)
        if (play->actors[i].state == ACTOR_WAITING)
            return true;
    return false;
}

/* Where nobody can go on, time does: what the dead have held comes to its end. */
static size_t let_time_go_by(const struct play *play, struct transition *ret_transitions)
{
    size_t count = 0;
    for (size_t i = 0; i < play->settings.actors && somebody_waits(play); i++)
        if (play->actors[i].state == ACTOR_CRASHED && lock_can_end(play, &play->actors[i]))
            ret_transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_EXPIRE};
    return count;
}

size_t faults_enabled(const struct play *play, struct transition *transitions, size_t steps)
{
    size_t count = steps;
    if (!play->fault_made || play->settings.follows_script)
        for (size_t i = 0; i < play->settings.actors; i++) {
            if (can_expire(play, &play->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_EXPIRE};
            if (play->settings.follows_script && lock_can_end(play, &play->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_RESTART};
            if ((play->settings.follows_script || play->settings.faults & WAITS_END) &&
                is_waiting(&play->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_TIMEOUT};
            if (play->settings.follows_script && can_be_cut(play, &play->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_CUT};
            if (can_crash(play, &play->actors[i]))
                transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_CRASH};
        }
    return count > 0 ? count : let_time_go_by(play, transitions);
}

/* ---- doing it ------------------------------------------------------------------------------------------------- */

static bool expire(struct play *play, struct actor *actor)
{
    enum lock_status status = time_end(play->settings.strategy->lock, play->time, play->shop, &actor->hold);
    if (status != LOCK_OK && status != LOCK_LOST) {
        snprintf(play->error, sizeof play->error, "a lock cannot be ended: %s: %s", lock_status_name(status),
                 play->time ? play->time->error : play->shop->error);
        return false;
    }
    /* Where nothing ended there is nothing to try again for; and with the dead it stays so. */
    actor->hold.is_over |= status == LOCK_OK || actor->state == ACTOR_CRASHED;
    if (status == LOCK_OK)
        scene_note(&play->scene, actor->index, EVENT_EXPIRED, actor->hold.is_place);
    return true;
}

/* Until one that waited in PostgreSQL, and whose wait was ended, has done what follows from it. */
static bool await_stop(struct play *play, const struct actor *actor)
{
    enum { PATIENCE_S = 20 };
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    bool well = true;
    while (well && actor->state == ACTOR_RUNNING)
        well = pthread_cond_clockwait(&play->scene.stopped, &play->scene.mutex, CLOCK_MONOTONIC, &until) == 0;
    return well;
}

static bool time_out(struct play *play, struct actor *actor)
{
    scene_note(&play->scene, actor->index, EVENT_TIMED_OUT, STEP_NO_VALUE);
    if (actor->state == ACTOR_WAITING) {
        actor->times_out = true;
        actor_release(actor);
        return true;
    }
    pthread_mutex_unlock(&play->scene.mutex);
    bool well = explore_shop_cancel(play->shop, actor_session(actor));
    pthread_mutex_lock(&play->scene.mutex);
    well = well && await_stop(play, actor);
    if (!well)
        snprintf(play->error, sizeof play->error, "postgresql: %s", play->shop->error);
    return well;
}

/* One that waits in PostgreSQL is nowhere where it could be ended: its session ends first, and then the thread does, as
 * soon as it is about to do more than to learn of it. */
static bool crash_one(struct play *play, struct actor *actor)
{
    bool well = true;
    if (actor->state == ACTOR_RUNNING) {
        actor->dies = true;
        pthread_mutex_unlock(&play->scene.mutex);
        well = explore_shop_end_session(play->shop, actor_session(actor));
        pthread_mutex_lock(&play->scene.mutex);
        well = well && await_stop(play, actor);
    }
    well = well && actor_crash(actor, play->shop);
    scene_note(&play->scene, actor->index, EVENT_CRASHED, STEP_NO_VALUE);
    if (!well)
        snprintf(play->error, sizeof play->error, "postgresql: %s", play->shop->error);
    return well;
}

/* Orders that share a process's memory for a lock die together. */
static bool crash(struct play *play, struct actor *actor)
{
    const struct lock_ops *lock = play->settings.strategy->lock;
    bool well = crash_one(play, actor);
    for (size_t i = 0; i < play->settings.actors && lock && !lock->server; i++) {
        struct actor *other = &play->actors[i];
        if (other != actor && other->state != ACTOR_ENDED && other->state != ACTOR_CRASHED)
            well = well && crash_one(play, other);
    }
    return well;
}

static bool restart(struct play *play, struct actor *actor)
{
    if (!time_forget(play->settings.strategy->lock, play->restarts++, &actor->hold)) {
        snprintf(play->error, sizeof play->error, "the lock has no further server that could restart");
        return false;
    }
    actor->hold.is_over |= !time_is_held(play->time, &actor->hold);
    scene_note(&play->scene, actor->index, EVENT_RESTARTED, STEP_NO_VALUE);
    return true;
}

static bool cut(struct play *play, struct actor *actor)
{
    if (!actor_cut(actor)) {
        snprintf(play->error, sizeof play->error, "a server cannot be made unreachable");
        return false;
    }
    scene_note(&play->scene, actor->index, EVENT_CUT, STEP_NO_VALUE);
    return true;
}

bool fault_make(struct play *play, struct transition transition)
{
    struct actor *actor = &play->actors[transition.actor];
    play->fault_made = true;
    switch (transition.kind) {
    case TRANSITION_EXPIRE: return expire(play, actor);
    case TRANSITION_RESTART: return restart(play, actor);
    case TRANSITION_CUT: return cut(play, actor);
    case TRANSITION_TIMEOUT: return time_out(play, actor);
    default: return crash(play, actor);
    }
}

/* ---- who has the lock ----------------------------------------------------------------------------------------- */

static bool has_it(const struct actor *actor)
{
    return actor->hold.depth > 0 && !actor->hold.is_over && actor->state != ACTOR_CRASHED;
}

/* Something of ACTOR's was released: was it what another one holds? */
static void look_for_the_robbed(struct play *play, unsigned actor)
{
    for (size_t i = 0; i < play->settings.actors; i++) {
        struct actor *other = &play->actors[i];
        if (i == actor || !has_it(other) || time_is_held(play->time, &other->hold))
            continue;
        other->hold.is_over = true;
        play->ending.robbed = true;
        scene_note(&play->scene, other->index, EVENT_ROBBED, actor);
    }
}

/* ACTOR was given the lock: does the server know of it, and is it alone? */
static void look_at_holders(struct play *play, const struct actor *actor)
{
    size_t holders = 0;
    for (size_t i = 0; i < play->settings.actors; i++)
        holders += has_it(&play->actors[i]);
    play->ending.two_holders |= holders > 1;
    play->ending.hollow |= has_it(actor) && !time_is_held(play->time, &actor->hold);
}

void faults_watch(struct play *play, size_t since)
{
    size_t count = play->scene.event_count; /* more may be noted */
    if (!play->settings.strategy->lock)
        return;
    for (size_t i = since; i < count; i++) {
        const struct event *event = &play->scene.events[i];
        if (event->what == STEP_DEL || event->what == STEP_UNLOCK)
            look_for_the_robbed(play, event->actor);
        else if (event->what == STEP_LOCK)
            look_at_holders(play, &play->actors[event->actor]);
    }
}
