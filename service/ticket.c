/* An order on its way through the service. Each has a ticket, which outlives the call that brought it: the order may
 * wait in a line, and be placed and answered by another worker than the one that read it. */
#include "service/ticket.h"

#include "service/api.h"
#include "service/batch.h"
#include "service/log.h"
#include "service/metrics.h"
#include "service/turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The observer of every order that is placed over HTTP: writes its trace, and thinks where a lesson wants it. */
struct order_observer {
    struct observer base;
    struct trace trace;
    int64_t think_us;
    enum step think_after; /* where the row's race begins */
    int64_t before_us;     /* when the step before was done; waiting is no step of its own here */
    int64_t locked_us;     /* since when the lock is held; 0: not */
};

static void on_step(struct observer *self, enum step step, int64_t value)
{
    struct order_observer *o = (struct order_observer *)self;
    int64_t now_us = monotonic_us();
    struct trace *t = &o->trace;
    bool waits_on = step == STEP_WAIT && t->step_count > 0 && t->step_count <= TRACE_STEPS &&
                    t->steps[t->step_count - 1].step == STEP_WAIT;
    if (waits_on)
        return; /* a lock that polls says so at every try */
    if (t->step_count < TRACE_STEPS) {
        t->steps[t->step_count].step = step;
        t->steps[t->step_count].at_us = now_us;
        t->steps[t->step_count].value = value;
    }
    t->step_count++;

    if (step == STEP_LOCK && t->strategy->lock) {
        metrics_lock_wait(t->strategy, now_us - o->before_us);
        o->locked_us = now_us;
        t->fence = value == STEP_NO_VALUE ? 0 : value;
    } else if (step == STEP_UNLOCK && o->locked_us) {
        metrics_lock_held(t->strategy, now_us - o->locked_us);
    }
    if (step != STEP_WAIT && step != STEP_SETNX && step != STEP_EXPIRE) /* taking a lock is one wait */
        o->before_us = now_us;
    bool in_race = step == o->think_after || (step == STEP_TAKE && o->think_after == STEP_READ);
    if (in_race && o->think_us > 0) {
        struct timespec pause = {.tv_sec = o->think_us / 1000000, .tv_nsec = o->think_us % 1000000 * 1000};
        nanosleep(&pause, NULL);
    }
}

struct ticket {
    struct waiting waiting; /* first: what a line hands out is a ticket */
    struct exchange *x;
    json_t *body; /* owns the request's strings */
    struct order_request request;
    struct settings settings;
    struct order_observer observer;
    struct placing placing;
};
/* Where a pause widens the row's race: where it lets its lock go too early, where it has been told for the last time
 * that the lock is its own, else where it has read. */
static enum step think_after(const struct strategy *strategy)
{
    if (strategy->span == INSIDE_TX)
        return STEP_UNLOCK;
    return strategy->take_stock == take_checked ? STEP_CHECK : STEP_READ;
}

/* NULL with a reply made. */
static struct ticket *ticket_new(struct exchange *x, const struct order_request *request, json_t *body)
{
    struct ticket *t = calloc(1, sizeof *t);
    if (!t) {
        reply_problem(x, INTERNAL_ERROR, NULL, "out of memory");
        json_decref(body);
        return NULL;
    }
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

/* What is known of the order before its turn comes. The wait for its turn is part of its wait for a lock. */
static void describe(struct ticket *t, const struct service *service)
{
    struct exchange *x = t->x;
    struct trace *trace = &t->observer.trace;
    const struct strategy *strategy = t->settings.strategy;
    trace->strategy = strategy;
    trace->product_id = t->request.product_id;
    trace->quantity = t->request.quantity;
    trace->received_us = x->received_us;
    memcpy(trace->request_id, x->request_id, sizeof trace->request_id);
    t->observer.base.on_step = on_step;
    t->observer.think_us = t->settings.think_ms * 1000;
    t->observer.think_after = think_after(strategy);
    t->placing.strategy = strategy;
    t->placing.request = &t->request;
    t->placing.observer = &t->observer.base;
    t->placing.instance = service->instance;
    t->placing.deadline_us = x->received_us + service->config.order_timeout_ms * 1000;
    t->placing.lock_deadline_us = monotonic_us() + t->settings.lock_wait_ms * 1000;
}

/* ---- placing: what a worker does for one order, or for a batch of them ----------------------------------- */

/* The order has ended before it began. */
static void fail(struct placing *placing, enum outcome outcome, const char *backend, const char *error)
{
    placing->result = (struct order_result){.outcome = outcome, .tries = 1, .backend = backend};
    snprintf(placing->result.error, sizeof placing->result.error, "%s", error);
}

/* Makes the orders the worker's. LOCK is a handle of their strategy's lock, or NULL. */
static void begin(struct ticket *const *tickets, size_t count, struct worker *worker, struct lock *lock)
{
    for (size_t i = 0; i < count; i++) {
        struct ticket *t = tickets[i];
        t->placing.db = worker->db;
        t->placing.lock = lock;
        t->observer.trace.worker = worker->id;
        t->observer.trace.started_us = t->observer.before_us = monotonic_us();
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
    struct placing *placings[BATCH_MAX], *lead = &tickets[0]->placing;
    const struct lock_ops *lock = lead->strategy->lock;
    for (size_t i = 0; i < count; i++)
        placings[i] = &tickets[i]->placing;
    if (lock_status != LOCK_OK)
        fail(lead, lock_status == LOCK_FAILED ? FAILED : BACKEND_AWAY,
             lock->server ? lock->server->name : "lock", "its lock cannot be opened");
    else if (worker_database(worker, lead->deadline_us, lead->lock_deadline_us) == DB_OK)
        create_batch(placings, count);
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
    trace->order_id = result->outcome == CREATED || result->outcome == REPLAYED ? result->order.id : 0;
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

    begin(tickets, count, worker, lock);
    atomic_store(&worker->orders, (int)count);
    atomic_store(&worker->product_id, product_id);
    place(tickets, count, worker, lock_status);
    for (size_t i = 0; i < count; i++) {
        account(tickets[i], worker, i == 0 ? db_round_trips(worker->db) - trips : 0);
        orders_reply(tickets[i]->x, &tickets[i]->placing);
    }
    if (lock)
        metrics_lock_work(strategy, lock->round_trips - lock_trips, lock->wake_ups - wake_ups);
    atomic_store(&worker->product_id, 0);
    for (size_t i = 0; i < count; i++) {
        gate_leave(worker->service->gate, product_id);
        ticket_close(tickets[i]);
    }
}

/* ---- taking turns ---------------------------------------------------------------------------------------- */

/* Where the orders of a product wait for each other, how many places there are at once, and how many orders a place is
 * for. */
struct rule {
    struct turns *turns; /* NULL: they do not wait */
    int limit;
    size_t together;
};

static struct rule rule_of(const struct service *service, const struct settings *settings)
{
    if (settings->strategy->place == place_in_batch)
        return (struct rule){service->batches, 1, BATCH_MAX};
    if (settings->product_limit > 0)
        return (struct rule){service->turns, (int)settings->product_limit, 1};
    return (struct rule){.together = 1};
}

/* Serves FIRST, whose turn it is, and then those who have come into line meanwhile, until there are none. */
static void serve_line(struct ticket *first, struct worker *worker)
{
    int64_t product_id = first->request.product_id;
    struct rule rule = rule_of(worker->service, &first->settings);
    first->waiting.next = NULL;
    for (struct waiting *next = &first->waiting; next;) {
        struct ticket *tickets[BATCH_MAX];
        size_t count = 0;
        for (; next; next = next->next)
            tickets[count++] = (struct ticket *)next;
        serve(tickets, count, worker);
        if (rule.turns)
            next = turns_next(rule.turns, product_id, rule.together);
    }
}

void ticket_admit(struct exchange *x, struct worker *worker, const struct order_request *request,
                  json_t *body, const struct strategy *asked)
{
    struct service *service = worker->service;
    struct ticket *t = ticket_new(x, request, body);
    if (!t) {
        http_finish(x);
        return;
    }
    int64_t deadline_us = x->received_us + service->config.order_timeout_ms * 1000;
    if (monotonic_us() >= deadline_us ||
        !gate_enter(service->gate, request->product_id, deadline_us, &t->settings)) {
        reply_problem(x, OVERLOADED, NULL, "the order's deadline passed while it waited for its turn");
        ticket_close(t);
        return;
    }
    if (asked)
        t->settings.strategy = asked;
    describe(t, service);
    struct rule rule = rule_of(service, &t->settings);
    enum turn turn = rule.turns ? turns_ask(rule.turns, t->request.product_id, rule.limit, &t->waiting)
                                : TURN_NOW;
    if (turn == TURN_LATER)
        return; /* the ticket is somebody else's now */
    if (turn == TURN_NOW) {
        serve_line(t, worker);
        return;
    }
    gate_leave(service->gate, t->request.product_id);
    reply_problem(x, OVERLOADED, NULL, "%zu orders wait for their turn already", turns_waiting(rule.turns));
    ticket_close(t);
}
