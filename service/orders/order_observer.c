/* The observer of an order that is placed over HTTP: records the order's trace, and sleeps for the think time that widens a race. */
#include "service/orders/order_observer.h"
#include "base/clock.h"

#include "service/orders/metrics.h"

static void on_step(struct observer *self, enum step step, int64_t value)
{
    struct order_observer *o = (struct order_observer *)self;
    int64_t now_us = monotonic_us();
    struct trace *t = &o->trace;
    bool waits_on = step == STEP_WAIT && t->step_count > 0 && t->step_count <= TRACE_STEPS &&
                    t->steps[t->step_count - 1].step == STEP_WAIT;
    if (waits_on)
        return; /* a lock that polls reports each try; one is enough */
    if (t->step_count < TRACE_STEPS) {
        t->steps[t->step_count].step = step;
        t->steps[t->step_count].at_us = now_us;
        t->steps[t->step_count].value = value;
        t->steps[t->step_count].think_us = 0;
    }
    t->step_count++;

    if (step == STEP_LOCK && t->strategy->lock) {
        metrics_lock_wait(t->strategy, now_us - o->before_us);
        o->locked_us = now_us;
        t->fence = value == STEP_NO_VALUE ? 0 : value;
    } else if (step == STEP_UNLOCK && o->locked_us) {
        metrics_lock_held(t->strategy, now_us - o->locked_us);
    }
    if (step != STEP_WAIT && step != STEP_SETNX && step != STEP_EXPIRE) /* taking a lock is one wait */
        o->before_us = now_us;
    bool refused = step == STEP_CHECK && value == 0; /* no step follows, so other orders cannot interleave */
    bool in_race = (step == o->think_after && !refused) || (step == STEP_TAKE && o->think_after == STEP_READ);
    if (in_race && o->think_us > 0) {
        struct timespec pause = {.tv_sec = o->think_us / 1000000, .tv_nsec = o->think_us % 1000000 * 1000};
        nanosleep(&pause, NULL);
        if (t->step_count <= TRACE_STEPS)
            t->steps[t->step_count - 1].think_us = monotonic_us() - now_us;
    }
}

/* The step after which a pause widens the strategy's race: the release, if it releases the lock before COMMIT; the last check
 * that it still has the lock, if it checks; else the read. */
static enum step think_after(const struct strategy *strategy)
{
    if (strategy->span == SPAN_INSIDE_TX)
        return STEP_UNLOCK;
    return strategy->take_stock->asks_lock ? STEP_CHECK : STEP_READ;
}

void order_observer_begin(struct order_observer *observer, const struct strategy *strategy, int64_t think_us)
{
    observer->base.on_step = on_step;
    observer->trace.strategy = strategy;
    observer->think_us = think_us;
    observer->think_after = think_after(strategy);
}
