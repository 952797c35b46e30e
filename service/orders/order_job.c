/* The order job: an order from its request to its answer. The HTTP thread puts it into the admission queue. A worker takes
 * it out, alone or with other orders of its product, places it and answers. */
#include "service/orders/order_job.h"
#include "base/clock.h"

#include "base/log.h"
#include "service/api/api.h"
#include "service/engine/batch.h"
#include "service/orders/metrics.h"
#include "service/orders/order_observer.h"
#include "service/write_behind/place_in_redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order_job {
    struct queued_order queued; /* first: a pointer to it is a pointer to the job */
    struct exchange *x;
    json_t *body; /* owns the request's strings */
    struct order_request request;
    char key[ORDER_KEY_MAX + 1]; /* the learner's Idempotency-Key as it is stored */
    struct order_observer observer;
    struct placing placing;
    bool echo;
};

/* ---- on the HTTP thread -------------------------------------------------------------------------------------- */

/* Frees a job whose request has been answered. */
static void close_job(struct order_job *job)
{
    http_finish(job->x);
    json_decref(job->body);
    free(job);
}

static void queue_job(struct exchange *x, const struct order_request *request, json_t *body,
                      const struct queued_order *queued, bool echo)
{
    struct service *service = x->app;
    struct order_job *job = calloc(1, sizeof *job);
    if (!job) {
        reply_problem(x, INTERNAL_ERROR, NULL, "out of memory");
        http_finish(x);
        json_decref(body);
        return;
    }
    job->queued = *queued;
    job->queued.deadline_us = x->received_us + service->config.order_timeout_ms * 1000;
    job->x = x;
    job->body = body;
    job->request = *request;
    job->echo = echo;
    /* A learner's keys are the learner's alone: another one may use the same. No client's key contains a space. */
    if (request->idempotency_key && x->owns) {
        snprintf(job->key, sizeof job->key, "%lld %s", (long long)x->owns, request->idempotency_key);
        job->request.idempotency_key = job->key;
    }
    switch (product_queues_add(service->orders, &job->queued)) {
    case ADMITTED: return;
    case QUEUE_FULL:
        reply_problem(x, OVERLOADED, NULL, "the admission queue is full; try again in a moment");
        break;
    case PRODUCT_FULL:
        reply_problem(x, OVERLOADED, NULL,
                      "%lld orders of this product are already waiting; try again in a moment",
                      (long long)service->config.product_queue);
        break;
    }
    close_job(job);
}

void order_job_queue(struct exchange *x, const struct order_request *request, json_t *body,
                     const struct strategy *strategy)
{
    queue_job(x, request, body,
              &(const struct queued_order){.product_id = request->product_id, .strategy = strategy}, false);
}

void order_job_queue_echo(struct exchange *x, const struct order_request *request, json_t *body)
{
    queue_job(x, request, body, &(const struct queued_order){0}, true);
}

/* ---- on a worker --------------------------------------------------------------------------------------------- */

/* What a worker needs for the orders of a turn besides its database. */
struct tools {
    struct lock *lock;         /* a handle of the strategy's lock, or NULL */
    struct redis_stock *redis; /* a connection to where the stock lies, or NULL */
    enum lock_status lock_status;
};

/* Fills in what is known of the order before the worker places it. */
static void begin(struct order_job *job, const struct turn *turn, struct worker *worker,
                  const struct tools *tools, int64_t now_us)
{
    const struct service *service = worker->service;
    const struct settings *settings = &turn->settings;
    struct trace *trace = &job->observer.trace;
    order_observer_begin(&job->observer, settings->strategy, settings->think_ms * 1000);
    job->observer.before_us = now_us;
    trace->product_id = job->request.product_id;
    trace->quantity = job->request.quantity;
    trace->received_us = job->x->received_us;
    trace->started_us = now_us;
    trace->worker = worker->id;
    memcpy(trace->request_id, job->x->request_id, sizeof trace->request_id);
    job->placing.strategy = settings->strategy;
    job->placing.request = &job->request;
    job->placing.observer = &job->observer.base;
    job->placing.instance = service->instance;
    job->placing.db = worker->db;
    job->placing.lock = tools->lock;
    job->placing.redis = tools->redis;
    job->placing.ids = service->ids;
    job->placing.unsold = service->unsold;
    job->placing.deadline_us = job->queued.deadline_us;
    /* If the product has a limit, the wait in the admission queue counts as part of the wait for the lock. */
    job->placing.lock_deadline_us = (turn->limited ? job->queued.since_us : now_us) +
                                    settings->lock_wait_ms * 1000;
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

/* The outcomes are in the jobs afterwards. */
static void place(struct order_job *const *jobs, size_t count, struct worker *worker,
                  const struct tools *tools)
{
    struct placing *placings[TURN_ORDERS_MAX], *lead = &jobs[0]->placing;
    const struct strategy *strategy = lead->strategy;
    for (size_t i = 0; i < count; i++)
        placings[i] = &jobs[i]->placing;
    /* Stock in Redis is taken without PostgreSQL, once the schema is known to be in place. */
    bool needs_database = strategy->combining != COMBINED_IN_REDIS ||
                          !atomic_load(&worker->service->migrated);
    if (tools->lock_status != LOCK_OK)
        fail_all(placings, count, tools->lock_status == LOCK_FAILED ? FAILED : BACKEND_AWAY,
                 strategy->lock->server ? strategy->lock->server->name : "lock", "its lock cannot be opened");
    else if (needs_database && worker_database(worker, lead->deadline_us, lead->lock_deadline_us) != DB_OK)
        fail_all(placings, count, BACKEND_AWAY, "postgresql", db_error(worker->db));
    else if (strategy->combining == COMBINED_IN_REDIS)
        create_in_redis(placings, count);
    else if (strategy->combining == COMBINED_IN_POSTGRES)
        create_batch(placings, count);
    else
        create_order(lead);
}

/* Reports the order's outcome to the trace, the metrics and the log. */
static void account(struct order_job *job, struct worker *worker, uint64_t round_trips)
{
    const struct strategy *strategy = job->placing.strategy;
    const struct order_result *result = &job->placing.result;
    struct trace *trace = &job->observer.trace;
    trace->ended_us = monotonic_us();
    trace->outcome = result->outcome;
    trace->order_id = result->outcome <= REPLAYED ? result->order.id : 0;
    trace->tries = result->tries;
    trace_ring_add(worker->traces, trace);
    metrics_order(strategy, result->outcome, trace->ended_us - job->x->received_us, result->tries,
                  round_trips);
    if (result->lock_lost_after_commit) {
        metrics_lock_lost_after_commit(strategy);
        log_seldom(LOG_WARNING, "%s: order %lld was committed, but its lock had ended before (request %s)",
                   strategy->name, (long long)result->order.id, job->x->request_id);
    }
    if (result->outcome == FAILED || result->outcome == UNKNOWN || result->outcome == BACKEND_AWAY)
        log_seldom(LOG_WARNING, "%s: order %s: %s (request %s)", strategy->name,
                   outcome_name(result->outcome), result->error, job->x->request_id);
}

/* Places the orders and answers them. */
static void serve(struct order_job *const *jobs, size_t count, const struct turn *turn, struct worker *worker)
{
    const struct strategy *strategy = turn->settings.strategy;
    struct tools tools = {0};
    tools.lock = worker_lock(worker, strategy, &tools.lock_status);
    if (strategy->combining == COMBINED_IN_REDIS)
        tools.redis = worker_stock(worker);
    if (tools.lock)
        tools.lock->lease_ms = turn->settings.lock_ttl_ms;
    uint64_t trips = db_round_trips(worker->db);
    uint64_t lock_trips = tools.lock ? tools.lock->round_trips : 0;
    uint64_t wake_ups = tools.lock ? tools.lock->wake_ups : 0;
    uint64_t stock_trips = tools.redis ? redis_stock_round_trips(tools.redis) : 0;

    int64_t now_us = monotonic_us();
    for (size_t i = 0; i < count; i++) {
        begin(jobs[i], turn, worker, &tools, now_us);
        if (i > 0)
            jobs[i]->observer.think_us = 0; /* a batch thinks once */
    }
    place(jobs, count, worker, &tools);
    for (size_t i = 0; i < count; i++) {
        account(jobs[i], worker, i == 0 ? db_round_trips(worker->db) - trips : 0);
        orders_reply(jobs[i]->x, &jobs[i]->placing);
    }
    if (strategy->combining != ONE_BY_ONE)
        metrics_batch(strategy, count);
    if (tools.lock)
        metrics_lock_work(strategy, tools.lock->round_trips - lock_trips, tools.lock->wake_ups - wake_ups);
    if (tools.redis) {
        metrics_lock_work(strategy, redis_stock_round_trips(tools.redis) - stock_trips, 0);
        writer_wake(worker->service->writer);
    }
}

/* In a class a sandbox can go to another learner while orders of the previous learner wait. These must not be placed in
 * the new learner's sale. Refuses them, moves the other orders to the front, and returns the number of the others. */
static size_t refuse_strangers(struct order_job **jobs, size_t count, const struct service *service)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        struct order_job *job = jobs[i];
        if (service->config.classroom && !access_owns(job->x, job->request.product_id))
            continue;
        jobs[i] = jobs[left];
        jobs[left++] = job;
    }
    return left;
}

void order_jobs_run(struct turn *turn, struct worker *worker)
{
    struct order_job *jobs[TURN_ORDERS_MAX], *first = (struct order_job *)turn->orders;
    size_t count = 0;
    struct queued_order *order = turn->orders;
    do { /* a turn has one order at least */
        jobs[count++] = (struct order_job *)order;
        order = order->next;
    } while (order);
    if (turn->expired)
        reply_problem(first->x, OVERLOADED, NULL,
                      "the order's deadline passed while it waited in the admission queue");
    else if (first->echo)
        orders_reply_echo(first->x, &first->request);
    else if ((count = refuse_strangers(jobs, count, worker->service)) > 0)
        serve(jobs, count, turn, worker);
    product_queues_end(worker->service->orders, turn);
    for (size_t i = 0; i < turn->count; i++)
        close_job(jobs[i]);
}
