/* A strategy: one row of data that says how createOrder keeps the stock right, or fails to. */
#ifndef OVERSELL_SERVICE_ENGINE_STRATEGY_H
#define OVERSELL_SERVICE_ENGINE_STRATEGY_H

#include "db/stock/stock.h"
#include "lock/registry.h"
#include "service/engine/outcome.h"
#include "service/engine/promise.h"

#include <stddef.h>

/* Where the lock lies around the transaction. */
enum lock_span {
    SPAN_NONE,         /* none outside the database */
    SPAN_AROUND_TX,    /* released after COMMIT */
    SPAN_INSIDE_TX,    /* released before COMMIT: the deliberate mistake */
    SPAN_AROUND_TWICE, /* around, and taken again by the stock step: needs a reentrant lock */
};

/* One transaction for all, or the stock committed first and the order after it. */
enum tx_scope { SCOPE_ONE_TX, SCOPE_TWO_TX };

/* Does a worker place the waiting orders of a product one by one, or several together? */
enum combining {
    COMBINE_NONE,
    COMBINE_IN_TURN, /* one after the other on one connection, each with its own transaction: place_orders.c */
    COMBINE_IN_POSTGRES, /* in one transaction: batch.c, whose place_in_batch places one that is alone */
    COMBINE_IN_REDIS,    /* by one script: service/write_behind/place_in_redis.c */
    COMBINE_COUNT
};

struct placing;
struct order_result;

/* A cell that a row leaves out is zero; zero is the ordinary case. */
struct strategy {
    const char *name;
    enum guarantee guarantee;
    unsigned shown_by; /* enum shown_by (promise.h), or-ed; nothing for GUARANTEE_SAFE */
    enum lock_span span;
    const struct lock_driver *lock; /* NULL: no lock outside the database transaction */
    enum fencing fencing;
    enum tx_scope scope;
    enum db_isolation isolation;
    const struct stock_policy *take_stock;
    int max_tries; /* how often an order is tried while it ends in a conflict; 0 and 1: once */
    enum outcome (*place)(struct placing *placing); /* places an order once; NULL: the engine's steps */
    enum combining combining;
    const char *title;
    const char *why;     /* why it does, or does not, oversell */
    const char *fits;    /* which of the uses that its guarantee allows; NULL: all, or not said */
    const char *instead; /* it shows a mistake, so do this; NULL: it is recommended */
};

enum { USE_MAX = 80 }; /* bytes of what strategy_use_for writes */

/* How many rows the strategy table may have. */
enum { STRATEGIES_MAX = 64 };
extern const struct strategy strategies[];
extern const size_t strategy_count;

/* NULL where there is none of this name. */
const struct strategy *strategy_find(const char *name);

/* What STRATEGY is recommended for: what its guarantee allows, and what it suits of that. Returns RET_USE, which the caller
 * provides, or NULL for a safe row that does not say what it suits, as a learner's. Any thread. */
const char *strategy_use_for(const struct strategy *strategy, char ret_use[USE_MAX]);
/* The lock of the strategy NAME; NULL: the strategy has no lock, or there is no such strategy. For each lock there is a
 * strategy with the same name. */
const struct lock_driver *strategy_lock(const char *name);
/* The server that it needs in addition to the shop's PostgreSQL, for its lock or its stock; NULL for none. */
const struct lock_server *strategy_server(const struct strategy *strategy);
/* Does the engine place an order of this strategy step by step? Otherwise the explorer cannot reorder its steps. */
bool strategy_has_steps(const struct strategy *strategy);
/* Its place in the table. */
size_t strategy_index(const struct strategy *strategy);

/* Names for JSON; static storage. */
const char *span_name(enum lock_span span);
const char *fence_name(enum fencing fencing);
const char *scope_name(enum tx_scope scope);
const char *isolation_name(enum db_isolation isolation);

#endif
