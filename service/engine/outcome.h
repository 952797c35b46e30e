/* How an order can end: a closed list, the same for every strategy. */
#ifndef OVERSELL_SERVICE_ENGINE_OUTCOME_H
#define OVERSELL_SERVICE_ENGINE_OUTCOME_H

enum outcome {
    ORDER_BEHIND_FAILURE =
        -2, /* nothing was committed, because of the order before it on the connection: begin again. Never a result */
    ORDER_GO_ON = -1, /* no outcome: nothing has refused the order so far. Never an order's result */
    ORDER_CREATED,
    ORDER_ACCEPTED, /* the stock is taken, the order is written later: order_result.order says what it will be */
    ORDER_REPLAYED, /* the Idempotency-Key's order exists already. The outcomes below have no order_result.order */
    ORDER_NO_SUCH_PRODUCT,
    ORDER_SOLD_OUT,
    ORDER_WRONG_STOCK_KIND,
    ORDER_LOCK_TIMEOUT,        /* no lock within the wait, in the database or outside it */
    ORDER_CONFLICT,            /* tries used up */
    ORDER_LOCK_LOST,           /* the lock ended before the write: nothing was sold */
    ORDER_KEY_MISMATCH,        /* the Idempotency-Key belongs to another order */
    ORDER_KEY_IN_USE,          /* the first order with this Idempotency-Key is still running */
    ORDER_OVERLOADED,          /* too many orders that are accepted are not written yet */
    ORDER_BACKEND_UNAVAILABLE, /* order_result.backend is not reachable: nothing was sold */
    ORDER_UNKNOWN, /* COMMIT, or what stands for it, was sent, and whether it happened cannot be found out in time */
    ORDER_FAILED, /* a bug, ours or below us: nothing was sold */
    OUTCOME_COUNT
};

/* In kebab-case, as in metrics and traces; static storage. */
const char *outcome_name(enum outcome outcome);

#endif
