/* An order worker: a thread of the order pipeline, which places orders with its own connections. */
#ifndef OVERSELL_SERVICE_ORDERS_ORDER_WORKER_H
#define OVERSELL_SERVICE_ORDERS_ORDER_WORKER_H

#include "db/postgres/connection.h"
#include "lock/lock.h"
#include "service/orders/order_pipeline.h"
#include "service/write_behind/redis_stock.h"

#include <pthread.h>

/* All but the traces is used by the worker's own thread alone. */
struct order_worker {
    struct order_pipeline *pipeline;
    pthread_t thread;
    int id; /* from 0; the number in traces */
    struct db *db;
    struct lock **locks;       /* by strategy index; each is opened when an order first needs it */
    struct redis_stock *redis; /* opened when an order first needs it */
    struct trace_ring *traces;
    /* While it places orders in turn: when the last one ended, and how many round trips were counted by then. */
    int64_t ended_us;
    uint64_t round_trips;
};

/* Prepares WORKER, which is zeroed, for its thread. False: out of memory; then it still has to be released. */
bool order_worker_prepare(struct order_worker *worker, struct order_pipeline *pipeline, int id);
/* Frees what the worker owns, after its thread has ended or if it was not started. */
void order_worker_release(struct order_worker *worker);

/* The worker's handle of the strategy's lock; NULL if the strategy has none, or if *ret_status is not LOCK_OK. */
struct lock *order_worker_lock(struct order_worker *worker, const struct strategy *strategy,
                               enum lock_status *ret_status);
/* The worker's connection to the stock in Redis; NULL: out of memory. */
struct redis_stock *order_worker_redis(struct order_worker *worker);

#endif
