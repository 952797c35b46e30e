/* What an order worker owns: its connections, its lock handles and its traces. */
#include "service/orders/order_worker.h"

#include <stdio.h>
#include <stdlib.h>

bool order_worker_prepare(struct order_worker *worker, struct order_pipeline *pipeline, int id)
{
    char name[64];
    snprintf(name, sizeof name, "oversell orders %d", id);
    worker->pipeline = pipeline;
    worker->id = id;
    worker->db = db_new(pipeline->config->database_url, name);
    worker->locks = calloc(strategy_count, sizeof worker->locks[0]);
    worker->traces = pipeline->traces[id] = trace_ring_new(1 + TRACES_MAX / (int)pipeline->config->workers);
    return worker->db && worker->locks && worker->traces;
}

void order_worker_release(struct order_worker *worker)
{
    for (size_t i = 0; worker->locks && i < strategy_count; i++)
        lock_close(worker->locks[i]);
    free(worker->locks);
    db_free(worker->db);
    redis_stock_free(worker->redis);
    trace_ring_free(worker->traces);
}

struct lock *order_worker_lock(struct order_worker *worker, const struct strategy *strategy,
                               enum lock_status *ret_status)
{
    *ret_status = LOCK_OK;
    if (!strategy->lock)
        return NULL;
    struct lock **lock = &worker->locks[strategy_index(strategy)];
    if (!*lock)
        *ret_status = lock_open(strategy->lock, lock);
    return *lock;
}

struct redis_stock *order_worker_redis(struct order_worker *worker)
{
    if (!worker->redis)
        worker->redis = redis_stock_new();
    return worker->redis;
}
