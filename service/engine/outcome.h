/* How an order can end: a closed list, the same for every strategy. */
#ifndef OVERSELL_SERVICE_ENGINE_OUTCOME_H
#define OVERSELL_SERVICE_ENGINE_OUTCOME_H

enum outcome {
    CREATED,
    ACCEPTED, /* taken, and to be written by and by: order_result.order says what it will be */
    REPLAYED, /* up to here there is an order; the Idempotency-Key's order exists already */
    NO_SUCH_PRODUCT,
    SOLD_OUT,
    WRONG_STOCK_KIND,
    BUSY,           /* no lock within the wait, in the database or outside it */
    CONFLICT,       /* tries used up */
    LOST_LOCK,      /* the lock ended before the write: nothing was sold */
    KEY_MISMATCHED, /* the Idempotency-Key belongs to another order */
    KEY_IN_USE,     /* the first order with this Idempotency-Key is still running */
    CROWDED,        /* too many orders that are accepted are not written yet */
    BACKEND_AWAY,   /* order_result.backend is not reachable: nothing was sold */
    UNKNOWN, /* COMMIT, or what stands for it, was sent, and whether it happened cannot be found out in time */
    FAILED,  /* a bug, ours or below us: nothing was sold */
    OUTCOME_COUNT
};

/* In kebab-case, as in metrics and traces; static storage. */
const char *outcome_name(enum outcome outcome);

#endif
