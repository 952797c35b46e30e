/* The observer of every order that is placed over HTTP: writes its trace, and thinks where a lesson wants it. */
#ifndef OVERSELL_SERVICE_ORDERS_ORDER_OBSERVER_H
#define OVERSELL_SERVICE_ORDERS_ORDER_OBSERVER_H

#include "service/orders/trace.h"

struct order_observer {
    struct observer base;
    struct trace trace;
    int64_t think_us;
    enum step think_after; /* where the row's race begins */
    int64_t before_us;     /* when the step before was done; waiting is no step of its own here */
    int64_t locked_us;     /* since when the lock is held; 0: not */
};

/* OBSERVER is zeroed. The rest of its trace is the caller's to fill in; before_us is when the order begins. */
void order_observer_begin(struct order_observer *observer, const struct strategy *strategy, int64_t think_us);

#endif
