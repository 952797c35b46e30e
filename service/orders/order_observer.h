/* The observer of an order that is placed over HTTP: records the order's trace, and sleeps for the think time that widens a race. */
#ifndef OVERSELL_SERVICE_ORDERS_ORDER_OBSERVER_H
#define OVERSELL_SERVICE_ORDERS_ORDER_OBSERVER_H

#include "service/orders/trace.h"

struct order_observer {
    struct observer base;
    struct trace trace;
    int64_t think_us;
    enum step think_after; /* sleep after this step, where the strategy's race begins */
    int64_t before_us;     /* when the last step ended; waiting counts as part of the next step */
    int64_t locked_us;     /* when the lock was taken; 0: it is not held */
};

/* OBSERVER is zeroed. The rest of its trace is the caller's to fill in; before_us is when the order begins. */
void order_observer_begin(struct order_observer *observer, const struct strategy *strategy, int64_t think_us);

#endif
