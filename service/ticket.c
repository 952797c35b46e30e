/* An order on its way through the service. Each has a ticket, which outlives the call that brought it: the order may
 * wait in a line, and be placed and answered by another thread than the one that read it.
 *
 * A turn at a product, and the orders that it is for, go to a worker through the queue, as orders that need no turn do;
 * and when those are answered the next of the line go behind all else that waits there. So orders of one product keep
 * their order, and no product keeps the workers from the others. */
#include "service/ticket.h"

#include "service/api.h"
#include "service/batch.h"
#include "service/log.h"
#include "service/metrics.h"
#include "service/order_observer.h"
#include "service/place_in_redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ticket {
    struct waiting waiting; /* first: what a line hands out is a ticket */
    struct exchange *x;
    json_t *body; /* owns the request's strings */
    struct order_request request;
    struct settings settings;
    struct order_observer observer;
    struct placing placing;
};

/* NULL when out of memory; BODY is stolen otherwise. */
static struct ticket *ticket_new(struct exchange *x, const struct order_request *request, json_t *body)
{
    struct ticket *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->x = x;
    t->body = body;
    t->request = *request;
    return t;
}

/* The order is answered. */
static void ticket_close(struct ticket *t)
{
    http_finish(t->x);
    json_decref(t->body);
    free(t);
}

static int64_t deadline_of(const struct exchange *x, const struct service *service)
{
    return x->received_us + service->config.order_timeout_ms * 1000;
}

/* It is through the gate: what is known of it before its turn comes. The wait for its turn is part of its wait for a
 * lock. */
static void describe(struct ticket *t, const struct service *service, const struct strategy *asked)
{
    const struct exchange *x = t->x;
    struct trace *trace = &t->observer.trace;
    if (asked)
        t->settings.strategy = asked;
    order_observer_begin(&t->observer, t->settings.strategy, t->settings.think_ms * 1000);
    trace->product_id = t->request.product_id;
    trace->quantity = t->request.quantity;
    trace->received_us = x->received_us;
    memcpy(trace->request_id, x->request_id, sizeof trace->request_id);
    t->placing.strategy = t->settings.strategy;
    t->placing.request = &t->request;
    t->placing.observer = &t->observer.base;
    t->placing.instance = service->instance;
    t->placing.deadline_us = deadline_of(x, service);
    t->placing.lock_deadline_us = monotonic_us() + t->settings.lock_wait_ms * 1000;
}

/* Ways of placing that take orders of a product together. */
struct combining {
    enum outcome (*place)(struct placing *placing);
    void (*together)(struct placing *const *orders, size_t count);
    bool in_redis; /* the stock and the orders: PostgreSQL need not be there */
};

static const struct combining *combining_of(const struct strategy *strategy)
{
    static const struct combining ways[] = {{place_in_batch, create_batch, false},
                                            {place_in_redis, create_in_redis, true}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (ways[i].place == strategy->place)
            return &ways[i];
    return NULL;
}

/* ---- placing: what a worker does for one order, or for a batch of them ----------------------------------- */

/* The order has ended before it began. */
static void fail(struct placing *placing, enum outcome outcome, const char *backend, const char *error)
{
    placing->result = (struct order_result){.outcome = outcome, .tries = 1, .backend = backend};
    snprintf(placing->result.error, sizeof placing->result.error, "%s", error);
}

/* Makes the orders the worker's. LOCK is a handle of their strategy's lock, STOCK a connection to where their stock lies, or
 * NULL. */
static void begin(struct ticket *const *tickets, size_t count, struct worker *worker, struct lock *lock,
                  struct redis_stock *stock)
{
    int64_t now_us = monotonic_us();
    for (size_t i = 0; i < count; i++) {
        struct ticket *t = tickets[i];
        t->placing.db = worker->db;
        t->placing.lock = lock;
        t->placing.redis = stock;
        t->placing.ids = worker->service->ids;
        t->observer.trace.worker = worker->id;
        t->observer.trace.started_us = t->observer.before_us = now_us;
        if (i > 0)
            t->observer.think_us = 0; /* a batch thinks once */
    }
    if (lock)
        lock->lease_ms = tickets[0]->settings.lock_ttl_ms;
}

/* The orders' outcomes are in their tickets afterwards. More than one are of a strategy that combines them. */
static void place(struct ticket *const *tickets, size_t count, struct worker *worker,
                  enum lock_status lock_status)
{
    const struct combining *combining = combining_of(tickets[0]->placing.strategy);
    struct placing *placings[BATCH_MAX], *lead = &tickets[0]->placing;
    const struct lock_ops *lock = lead->strategy->lock;
    for (size_t i = 0; i < count; i++)
        placings[i] = &tickets[i]->placing;
    if (lock_status != LOCK_OK)
        fail(lead, lock_status == LOCK_FAILED ? FAILED : BACKEND_AWAY,
             lock->server ? lock->server->name : "lock", "its lock cannot be opened");
    else if ((combining && combining->in_redis && atomic_load(&worker->service->migrated)) ||
             worker_database(worker, lead->deadline_us, lead->lock_deadline_us) == DB_OK)
        (combining ? combining->together : create_batch)(placings, count);
    else
        for (size_t i = 0; i < count; i++)
            fail(placings[i], BACKEND_AWAY, "postgresql", db_error(worker->db));
}

/* Tells the trace, the metrics and the log what has become of the order. */
static void account(struct ticket *t, struct worker *worker, uint64_t round_trips)
{
    const struct strategy *strategy = t->placing.strategy;
    const struct order_result *result = &t->placing.result;
    struct trace *trace = &t->observer.trace;
    trace->ended_us = monotonic_us();
    trace->outcome = result->outcome;
    trace->order_id = result->outcome <= REPLAYED ? result->order.id : 0;
    trace->tries = result->tries;
    trace_ring_add(worker->traces, trace);
    metrics_order(strategy, result->outcome, trace->ended_us - t->x->received_us, result->tries, round_trips);
    if (result->lock_lost_after_commit) {
        metrics_lock_lost_after_commit(strategy);
        log_seldom(LOG_WARNING, "%s: order %lld was committed, but its lock had ended before (request %s)",
                   strategy->name, (long long)result->order.id, t->x->request_id);
    }
    if (result->outcome == FAILED || result->outcome == UNKNOWN || result->outcome == BACKEND_AWAY)
        log_seldom(LOG_WARNING, "%s: order %s: %s (request %s)", strategy->name,
                   outcome_name(result->outcome), result->error, t->x->request_id);
}

/* Places the orders and answers them. */
static void serve(struct ticket *const *tickets, size_t count, struct worker *worker)
{
    const struct strategy *strategy = tickets[0]->placing.strategy;
    int64_t product_id = tickets[0]->request.product_id;
    enum lock_status lock_status;
    struct lock *lock = worker_lock(worker, strategy, &lock_status);
    uint64_t trips = db_round_trips(worker->db);
    uint64_t lock_trips = lock ? lock->round_trips : 0, wake_ups = lock ? lock->wake_ups : 0;
    const struct combining *combining = combining_of(strategy);
    struct redis_stock *stock = combining && combining->in_redis ? worker_stock(worker) : NULL;
    uint64_t stock_trips = stock ? redis_stock_round_trips(stock) : 0;

    begin(tickets, count, worker, lock, stock);
    atomic_store(&worker->orders, (int)count);
    atomic_store(&worker->product_id, product_id);
    place(tickets, count, worker, lock_status);
    for (size_t i = 0; i < count; i++) {
        account(tickets[i], worker, i == 0 ? db_round_trips(worker->db) - trips : 0);
        orders_reply(tickets[i]->x, &tickets[i]->placing);
    }
    if (combining)
        metrics_batch(strategy, count);
    if (lock)
        metrics_lock_work(strategy, lock->round_trips - lock_trips, lock->wake_ups - wake_ups);
    if (stock) {
        metrics_lock_work(strategy, redis_stock_round_trips(stock) - stock_trips, 0);
        writer_wake(worker->service->writer);
    }
    atomic_store(&worker->product_id, 0);
    for (size_t i = 0; i < count; i++) {
        gate_leave(worker->service->gate, product_id);
        ticket_close(tickets[i]);
    }
}

/* ---- taking turns ---------------------------------------------------------------------------------------- */

/* Where the orders of a product wait for each other, how many turns there are at once, and how many orders a turn is
 * for. */
struct rule {
    struct turns *turns; /* NULL: they do not wait */
    int limit;
    size_t together;
};

static struct rule rule_of(const struct service *service, const struct settings *settings)
{
    const struct combining *combining = combining_of(settings->strategy);
    if (combining && combining->in_redis)
        return (struct rule){service->takes, 1, BATCH_MAX};
    if (combining)
        return (struct rule){service->batches, 1, BATCH_MAX};
    if (settings->product_limit > 0)
        return (struct rule){service->turns, (int)settings->product_limit, 1};
    return (struct rule){.together = 1};
}

bool ticket_lines_up(const struct settings *settings)
{
    return combining_of(settings->strategy) || settings->product_limit > 0;
}

/* The next of the line, whose turn comes as FIRST's has ended; NULL: nobody waits. */
static struct ticket *next_in_line(const struct service *service, const struct settings *settings,
                                   int64_t product_id)
{
    struct rule rule = rule_of(service, settings);
    return rule.turns ? (struct ticket *)turns_next(rule.turns, product_id, rule.together) : NULL;
}

void ticket_serve(struct ticket *first, struct worker *worker)
{
    const struct service *service = worker->service;
    int64_t product_id = first->request.product_id;
    struct settings settings = first->settings;
    while (first) {
        struct ticket *tickets[BATCH_MAX];
        size_t count = 0;
        for (struct waiting *t = &first->waiting; t; t = t->next)
            tickets[count++] = (struct ticket *)t;
        serve(tickets, count, worker);
        first = next_in_line(service, &settings, product_id);
        if (!first)
            return;
        first->x->work = first;
        if (queue_yield(service->queues[LANE_ORDERS], first->x))
            return;
    }
}

/* Answers that there is no room. */
static void turn_away(struct ticket *t, struct service *service, const char *what, size_t count)
{
    reply_problem(t->x, OVERLOADED, NULL, "%zu %s already", count, what);
    gate_leave(service->gate, t->request.product_id);
    ticket_close(t);
}

/* The order's turn at its product: now, later (then the ticket is somebody else's), or never (then it is answered). */
static enum turn take_turn(struct ticket *t, struct service *service)
{
    struct rule rule = rule_of(service, &t->settings);
    if (!rule.turns)
        return TURN_NOW;
    enum turn turn = turns_ask(rule.turns, t->request.product_id, rule.limit, &t->waiting);
    if (turn == TURN_NEVER)
        turn_away(t, service, "orders wait for their turn", turns_waiting(rule.turns, 0));
    return turn;
}

/* It is FIRST's turn, but no worker has room for it: so it is for those who came into line behind it meanwhile. */
static void give_up(struct ticket *first, struct service *service)
{
    int64_t product_id = first->request.product_id;
    struct settings settings = first->settings;
    for (; first; first = next_in_line(service, &settings, product_id))
        for (struct waiting *t = &first->waiting, *next; t; t = next) {
            next = t->next;
            turn_away((struct ticket *)t, service, "requests are waiting",
                      queue_depth(service->queues[LANE_ORDERS]));
        }
}

bool ticket_line_up(struct exchange *x, const struct order_request *request, json_t *body,
                    const struct strategy *asked)
{
    struct service *service = x->app;
    struct ticket *t = ticket_new(x, request, body);
    if (!t || !gate_try_enter(service->gate, request->product_id, &t->settings)) {
        free(t);
        return false;
    }
    describe(t, service, asked);
    if (!ticket_lines_up(&t->settings)) { /* they have just been switched */
        gate_leave(service->gate, request->product_id);
        free(t);
        return false;
    }
    http_hand_over(x);
    if (take_turn(t, service) != TURN_NOW)
        return true;
    x->work = t;
    if (!queue_push(service->queues[LANE_ORDERS], x))
        give_up(t, service);
    return true;
}

void ticket_admit(struct exchange *x, struct worker *worker, const struct order_request *request,
                  json_t *body, const struct strategy *asked)
{
    struct service *service = worker->service;
    int64_t deadline_us = deadline_of(x, service);
    struct ticket *t = ticket_new(x, request, body);
    if (!t) {
        reply_problem(x, INTERNAL_ERROR, NULL, "out of memory");
        http_finish(x);
        json_decref(body);
    } else if (monotonic_us() >= deadline_us ||
               !gate_enter(service->gate, request->product_id, deadline_us, &t->settings)) {
        reply_problem(x, OVERLOADED, NULL, "the order's deadline passed while it waited for its turn");
        ticket_close(t);
    } else {
        describe(t, service, asked);
        if (take_turn(t, service) == TURN_NOW)
            ticket_serve(t, worker);
    }
}
