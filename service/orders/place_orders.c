/* On a worker, from a batch to the engine and back: gives the orders the worker's connections, has their strategy place them,
 * replies, and frees their jobs. */
#include "service/orders/place_orders.h"

#include "base/clock.h"
#include "base/log.h"
#include "db/schema/migrate.h"
#include "service/engine/batch.h"
#include "service/http/problem.h"
#include "service/orders/metrics.h"
#include "service/orders/order_job.h"
#include "service/orders/order_observer.h"
#include "service/orders/order_reply.h"
#include "service/write_behind/place_in_redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What placing an order needs, in addition to its job. */
struct order_work {
    struct order_job *job;
    struct order_batch *batch;
    struct order_worker *worker;
    struct order_observer observer;
    struct placing placing;
};

/* Fills in all that the engine and the observer need to know, except the lock and the connection to Redis. */
static void begin_order(struct order_job *job, const struct order_batch *batch,
                        const struct order_worker *worker, int64_t now_us)
{
    const struct order_pipeline *pipeline = worker->pipeline;
    const struct settings *settings = &batch->settings;
    struct trace *trace = &job->work->observer.trace;
    order_observer_begin(&job->work->observer, settings->strategy, settings->think_ms * 1000);
    job->work->observer.before_us = now_us;
    trace->product_id = job->request.product_id;
    trace->quantity = job->request.quantity;
    trace->received_us = job->x->received_us;
    trace->started_us = now_us;
    trace->worker = worker->id;
    memcpy(trace->request_id, job->x->request_id, sizeof trace->request_id);
    job->work->placing = (struct placing){
        .strategy = settings->strategy,
        .request = &job->request,
        .observer = &job->work->observer.base,
        .instance = pipeline->instance,
        .together = true,
        .db = worker->db,
        .ids = pipeline->ids,
        .unsold = pipeline->unsold,
        .deadline_us = job->queued.deadline_us,
        /* If the product has a limit, the wait in the admission queue counts as part of the wait for the lock. */
        .lock_deadline_us = (batch->limited ? job->queued.since_us : now_us) + settings->lock_wait_ms * 1000,
    };
}

/* The orders have ended before they began. */
static void fail_all(struct placing *const *placings, size_t count, enum outcome outcome, const char *backend,
                     const char *error)
{
    for (size_t i = 0; i < count; i++) {
        struct order_result *result = &placings[i]->result;
        *result = (struct order_result){.outcome = outcome, .tries = 1, .backend = backend};
        snprintf(result->error, sizeof result->error, "%s", error);
    }
}

/* The first orders of a process look for the schema. Later ones connect in their own way of placing, if at all: stock in Redis
 * is taken without PostgreSQL. */
static bool has_schema(const struct placing *lead)
{
    if (db_schema_is_ready())
        return true;
    db_set_deadline(lead->db, lead->deadline_us, lead->lock_deadline_us);
    return db_ready_with_schema(lead->db) == DB_OK;
}

/* The outcomes are in the placings afterwards. */
static void place(struct placing *const *placings, size_t count, enum lock_status lock_status)
{
    struct placing *lead = placings[0];
    const struct strategy *strategy = lead->strategy;
    if (lock_status != LOCK_OK)
        fail_all(placings, count, lock_status == LOCK_FAILED ? ORDER_FAILED : ORDER_BACKEND_UNAVAILABLE,
                 strategy->lock->server ? strategy->lock->server->name : "lock", "its lock cannot be opened");
    else if (!has_schema(lead))
        fail_all(placings, count, ORDER_BACKEND_UNAVAILABLE, "postgresql", db_error(lead->db));
    else if (strategy->combining == COMBINE_IN_REDIS)
        create_in_redis(placings, count);
    else if (strategy->combining == COMBINE_IN_POSTGRES)
        create_batch(placings, count);
    else
        create_order(lead);
}

/* Reports the order's outcome to the trace, the metrics and the log. */
static void report(struct order_job *job, struct order_worker *worker, uint64_t round_trips)
{
    const struct strategy *strategy = job->work->placing.strategy;
    const struct order_result *result = &job->work->placing.result;
    struct trace *trace = &job->work->observer.trace;
    trace->ended_us = monotonic_us();
    trace->outcome = result->outcome;
    trace->order_id = result->outcome <= ORDER_REPLAYED ? result->order.id : 0;
    trace->tries = result->tries;
    trace_ring_add(worker->traces, trace);
    metrics_order(strategy, result->outcome, trace->ended_us - job->x->received_us, result->tries,
                  round_trips);
    if (result->lock_lost_after_commit) {
        metrics_lock_lost_after_commit(strategy);
        log_seldom(LOG_WARNING, "%s: order %lld was committed, but its lock had ended before (request %s)",
                   strategy->name, (long long)result->order.id, job->x->request_id);
    }
    if (result->outcome == ORDER_FAILED || result->outcome == ORDER_UNKNOWN ||
        result->outcome == ORDER_BACKEND_UNAVAILABLE)
        log_seldom(LOG_WARNING, "%s: order %s: %s (request %s)", strategy->name,
                   outcome_name(result->outcome), result->error, job->x->request_id);
}

/* Places COUNT (1 to ORDER_BATCH_MAX) orders, together if their strategy combines orders, and replies to each. The jobs stay the
 * caller's. */
static void place_at_once(struct order_job *const *jobs, size_t count, const struct order_batch *batch,
                          struct order_worker *worker)
{
    const struct strategy *strategy = batch->settings.strategy;
    enum lock_status lock_status;
    struct lock *lock = order_worker_lock(worker, strategy, &lock_status);
    struct redis_stock *redis = strategy->combining == COMBINE_IN_REDIS ? order_worker_redis(worker) : NULL;
    if (lock)
        lock->lease_ms = batch->settings.lock_ttl_ms;
    uint64_t trips = db_round_trips(worker->db);
    uint64_t lock_trips = lock ? lock->round_trips : 0, wake_ups = lock ? lock->wake_ups : 0;
    uint64_t redis_trips = redis ? redis_stock_round_trips(redis) : 0;

    struct placing *placings[ORDER_BATCH_MAX] = {&jobs[0]->work->placing}; /* there is at least one */
    int64_t now_us = monotonic_us();
    for (size_t i = 0; i < count; i++) {
        begin_order(jobs[i], batch, worker, now_us);
        placings[i] = &jobs[i]->work->placing;
        placings[i]->lock = lock;
        placings[i]->redis = redis;
        if (i > 0)
            jobs[i]->work->observer.think_us = 0; /* a batch thinks once */
    }
    place(placings, count, lock_status);
    for (size_t i = 0; i < count; i++) {
        report(jobs[i], worker, i == 0 ? db_round_trips(worker->db) - trips : 0);
        order_reply(jobs[i]->x, placings[i]);
    }
    if (strategy->combining == COMBINE_IN_POSTGRES || strategy->combining == COMBINE_IN_REDIS)
        metrics_batch(strategy, count);
    if (lock)
        metrics_lock_work(strategy, lock->round_trips - lock_trips, lock->wake_ups - wake_ups);
    if (redis) {
        metrics_lock_work(strategy, redis_stock_round_trips(redis) - redis_trips, 0);
        writer_wake(worker->pipeline->writer);
    }
}

/* ---- in turn ------------------------------------------------------------------------------------------------- */

/* PostgreSQL begins with an order of the connection when it has ended the one before, however early the order was sent. */
static void begin_after(struct trace *trace, int64_t ended_us)
{
    if (trace->started_us < ended_us)
        trace->started_us = ended_us;
}

static void answer(struct order_job *job)
{
    struct order_worker *worker = job->work->worker;
    begin_after(&job->work->observer.trace, worker->ended_us);
    uint64_t round_trips = db_round_trips(worker->db);
    report(job, worker, round_trips - worker->round_trips);
    worker->ended_us = job->work->observer.trace.ended_us;
    worker->round_trips = round_trips;
    order_reply(job->x, &job->work->placing);
    admission_end_one(worker->pipeline->queue, job->work->batch);
    http_finish(job->x);
    job->x = NULL;
}

static void on_done(struct placing *placing)
{
    answer(((struct order_work *)((char *)placing - offsetof(struct order_work, placing)))->job);
}

/* Answers the order, unless on_done has done so, and frees it. */
static void finish(struct order_job *job)
{
    if (job->x && job->work->placing.end != END_DONE)
        order_settle(&job->work->placing); /* may call on_done */
    if (job->x)
        answer(job);
    order_job_close(job);
}

/* Places COUNT orders one after the other on one connection, each in its own transaction: the next one begins while PostgreSQL
 * still commits the one before. Ends, answers and frees each as soon as it is known what became of it. */
static void place_in_turn(struct order_job *const *jobs, size_t count, struct order_batch *batch,
                          struct order_worker *worker)
{
    size_t finished = 0;
    worker->round_trips = db_round_trips(worker->db);
    for (size_t i = 0; i < count; i++) {
        struct order_job *job = jobs[i];
        struct placing *placing = &job->work->placing;
        begin_order(job, batch, worker, monotonic_us());
        placing->on_done = on_done;
        place(&placing, 1, LOCK_OK);
        while (finished <= i && jobs[finished]->work->placing.end != END_SENT)
            finish(jobs[finished++]);
    }
    for (; finished < count; finished++)
        finish(jobs[finished]);
}

/* ---- a batch ------------------------------------------------------------------------------------------------- */

/* False: memory is out, and the job is answered. */
static bool begin_work(struct order_job *job, struct order_batch *batch, struct order_worker *worker)
{
    job->work = calloc(1, sizeof *job->work);
    if (!job->work) {
        reply_problem(job->x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
        return false;
    }
    job->work->job = job;
    job->work->batch = batch;
    job->work->worker = worker;
    return true;
}

/* In a class a sandbox can go to another learner while orders of the previous learner wait. These must not be placed in
 * the new learner's sale. Refuses them, moves the other orders to the front, and returns the number of the others. */
static size_t begin_all(struct order_job **jobs, size_t count, struct order_batch *batch,
                        struct order_worker *worker)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        struct order_job *job = jobs[i];
        if (!worker->pipeline->may_order(job->x, job->request.product_id) || !begin_work(job, batch, worker))
            continue;
        jobs[i] = jobs[left];
        jobs[left++] = job;
    }
    return left;
}

void place_orders(struct order_batch *batch, struct order_worker *worker)
{
    struct order_job *jobs[ORDER_BATCH_MAX], *first = (struct order_job *)batch->orders;
    size_t all = 0, count;
    bool in_turn = false;
    struct queued_order *order = batch->orders;
    do { /* a batch has one order at least */
        jobs[all++] = (struct order_job *)order;
        order = order->next;
    } while (order);
    if (batch->expired)
        reply_problem(first->x, PROBLEM_OVERLOADED, NULL,
                      "the order's deadline passed while it waited in the admission queue; order again");
    else if (first->echo)
        order_reply_echo(first->x, &first->request);
    else if ((count = begin_all(jobs, all, batch, worker)) > 1 &&
             (in_turn = batch->settings.strategy->combining == COMBINE_IN_TURN))
        place_in_turn(jobs, count, batch, worker);
    else if (count > 0)
        place_at_once(jobs, count, batch, worker);
    admission_end(worker->pipeline->queue, batch);
    for (size_t i = in_turn ? count : 0; i < all; i++)
        order_job_close(jobs[i]);
}
