/* Replays the events of a schedule on a model of the lock: its holders, and the queue of those that wait for it. */
#include "loadtest/explore/explain/lock_waits.h"

#include "loadtest/explore/exec/lock_admin.h"
#include "lock/lab.h"

#include <string.h>

struct lock_model {
    bool has_queue;
    bool ends_with_crash; /* a crash of its holder ends the lock */
    unsigned holders;     /* bits of actors */
    unsigned half_taken;  /* bits of actors whose first command has set the key */
    /* Only with a queue: the actors in the sequence in which the lock serves them, the holder first. */
    size_t queued;
    uint8_t queue[ACTORS_MAX];
};

static size_t place_of(const struct lock_model *model, unsigned actor)
{
    size_t place = 0;
    while (place < model->queued && model->queue[place] != actor)
        place++;
    return place;
}

static void join_queue(struct lock_model *model, uint8_t actor)
{
    if (model->has_queue && place_of(model, actor) == model->queued && model->queued < ACTORS_MAX)
        model->queue[model->queued++] = actor;
}

static void leave_queue(struct lock_model *model, uint8_t actor)
{
    size_t place = place_of(model, actor);
    if (place == model->queued)
        return;
    model->queued--;
    memmove(model->queue + place, model->queue + place + 1, model->queued - place);
}

/* ACTOR believes that it has the lock. It has none if its lock ended between its two commands, or if its place in the queue ended and
 * others are there. */
static void acquire(struct lock_model *model, uint8_t actor)
{
    if (model->half_taken & 1u << actor)
        return;
    if (model->queued == 0)
        join_queue(model, actor);
    if (!model->has_queue || place_of(model, actor) < model->queued)
        model->holders |= 1u << actor;
}

static void end_lock(struct lock_model *model, uint8_t actor)
{
    model->holders &= ~(1u << actor);
    leave_queue(model, actor);
}

static void apply_event(struct lock_model *model, const struct event *event)
{
    unsigned bit = 1u << event->actor;
    switch (event->what) {
    case STEP_SETNX:
        model->half_taken |= bit;
        model->holders |= bit;
        break;
    case STEP_WAIT: join_queue(model, event->actor); break;
    case EVENT_WAITS:
        if (event->value == 0 || event->value == WAITS_FOR_EVER)
            join_queue(model, event->actor);
        break;
    case STEP_LOCK: acquire(model, event->actor); break;
    case EVENT_RETRY:
    case EVENT_ENDED: /* a waiter has given up; an order that ends with the lock has leaked it */
        model->half_taken &= ~bit;
        if (!(model->holders & bit))
            leave_queue(model, event->actor);
        break;
    case EVENT_CRASHED:
        if (model->ends_with_crash)
            end_lock(model, event->actor);
        break;
    case EVENT_RESTARTED:
        if (event->value == RESTART_ENDED_LOCK)
            end_lock(model, event->actor);
        break;
    case STEP_UNLOCK:
    case STEP_DEL:
    case EVENT_EXPIRED:
    case EVENT_LOCK_STOLEN: end_lock(model, event->actor); break;
    default: break;
    }
}

unsigned lock_waits_for(const struct execution *execution, unsigned actor, size_t events,
                        unsigned *ret_holders)
{
    const struct lock_driver *lock = execution->settings.strategy->lock;
    struct lock_model model = {.has_queue = lock_has_queue(lock), .ends_with_crash = !execution->lock_admin};
    for (size_t i = 0; i < events; i++)
        apply_event(&model, &execution->trace.events[i]);
    *ret_holders = model.holders;
    if (!model.has_queue)
        return model.holders & ~(1u << actor);
    size_t place = place_of(&model, actor);
    bool is_behind = place > 0 && place < model.queued;
    bool watches_first = lock->lab && lock->lab->watches_first;
    return is_behind ? 1u << model.queue[watches_first ? 0 : place - 1] : 0;
}

unsigned event_waits_for(const struct execution *execution, size_t i)
{
    const struct event *event = &execution->trace.events[i];
    unsigned holders;
    if (event->value == WAITS_FOR_EVER)
        return 0;
    return event->value != 0 ? (unsigned)event->value
                             : lock_waits_for(execution, event->actor, i + 1, &holders);
}
