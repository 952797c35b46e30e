/* Orders over HTTP: placing one, reading one, listing them. */
#include "service/api.h"

#include "db/books.h"
#include "service/log.h"
#include "service/metrics.h"

#include <stdio.h>
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

static json_t *order_json(const struct order *order)
{
    return json_pack("{s:I, s:I, s:I, s:s, s:s, s:s, s:o, s:s}", "id", (json_int_t)order->id, "product_id",
                     (json_int_t)order->product_id, "quantity", (json_int_t)order->quantity, "amount",
                     order->amount, "status", order->status, "strategy", order->strategy, "stock_seen",
                     order->stock_seen == STOCK_UNSEEN ? json_null() : json_integer(order->stock_seen),
                     "created_at", order->created_at);
}

static void reply_outcome(struct exchange *x, const struct placing *p)
{
    const struct order_result *result = &p->result;
    const char *strategy = p->strategy->name;
    json_t *members = json_pack("{s:s}", "strategy", strategy);

    switch (result->outcome) {
    case REPLAYED: http_set_header(x, "Idempotency-Replayed", "true"); /* fall through */
    case CREATED:
        json_decref(members);
        http_set_header(x, "Location", "/orders/%lld", (long long)result->order.id);
        http_reply_json(x, 201, order_json(&result->order));
        return;
    case NO_SUCH_PRODUCT:
        reply_problem(x, UNKNOWN_PRODUCT, members, "there is no product %lld",
                      (long long)p->request->product_id);
        return;
    case SOLD_OUT:
        if (result->available != STOCK_UNSEEN)
            json_object_set_new(members, "available", json_integer(result->available));
        reply_problem(x, STOCK_SOLD_OUT, members, "fewer than %lld are left",
                      (long long)p->request->quantity);
        return;
    case WRONG_STOCK_KIND:
        json_object_set_new(members, "kind", json_string(result->kind));
        reply_problem(x, WRONG_KIND_OF_STOCK, members, "the stock is kept as %s", result->kind);
        return;
    case BUSY: reply_problem(x, LOCK_WAIT_OVER, members, "no lock within the wait; nothing was sold"); return;
    case CONFLICT:
        json_object_set_new(members, "tries", json_integer(result->tries));
        reply_problem(x, TRIES_USED_UP, members, "%d tries met other orders; nothing was sold",
                      result->tries);
        return;
    case LOST_LOCK: reply_problem(x, LOCK_WAS_LOST, members, "nothing was sold"); return;
    case KEY_MISMATCHED:
        reply_problem(x, IDEMPOTENCY_MISMATCH, members, "the order with this key is another");
        return;
    case KEY_IN_USE:
        reply_problem(x, IDEMPOTENCY_IN_PROGRESS, members, "ask again with the same key");
        return;
    case BACKEND_AWAY:
        json_object_set_new(members, "backend", json_string(result->backend ? result->backend : "unknown"));
        reply_problem(x, BACKEND_UNAVAILABLE, members,
                      "%s cannot be reached or does not serve; nothing was sold",
                      result->backend ? result->backend : "a server");
        return;
    case UNKNOWN:
        reply_problem(x, OUTCOME_NOT_KNOWN, members,
                      "the reply to COMMIT was lost; ask again with the same Idempotency-Key");
        return;
    case FAILED:
    case OUTCOME_COUNT: break;
    }
    reply_problem(x, INTERNAL_ERROR, members, "%s", result->error);
}

/* The order has ended before it began. */
static void fail(struct placing *placing, enum outcome outcome, const char *backend, const char *error)
{
    placing->result = (struct order_result){.outcome = outcome, .tries = 1, .backend = backend};
    snprintf(placing->result.error, sizeof placing->result.error, "%s", error);
}

/* Where a pause widens the row's race: where it lets its lock go too early, where it has been told for the last time
 * that the lock is its own, else where it has read. */
static enum step think_after(const struct strategy *strategy)
{
    if (strategy->span == INSIDE_TX)
        return STEP_UNLOCK;
    return strategy->take_stock == take_checked ? STEP_CHECK : STEP_READ;
}

/* Places the order under the settings of the moment, or under the strategy asked for. */
static void place(struct exchange *x, struct worker *worker, const struct order_request *request,
                  const struct settings *settings)
{
    struct order_observer observer = {.base.on_step = on_step, .think_us = settings->think_ms * 1000};
    struct trace *trace = &observer.trace;
    const struct strategy *strategy = settings->strategy;
    observer.think_after = think_after(strategy);
    int64_t now_us = monotonic_us();
    trace->strategy = strategy;
    trace->worker = worker->id;
    trace->product_id = request->product_id;
    trace->quantity = request->quantity;
    trace->received_us = x->received_us;
    trace->started_us = now_us;
    memcpy(trace->request_id, x->request_id, sizeof trace->request_id);

    struct placing placing = {
        .strategy = strategy,
        .request = request,
        .db = worker->db,
        .observer = &observer.base,
        .instance = worker->service->instance,
        .deadline_us = x->received_us + worker->service->config.order_timeout_ms * 1000,
        .lock_deadline_us = now_us + settings->lock_wait_ms * 1000,
    };
    enum lock_status lock_status;
    placing.lock = worker_lock(worker, strategy, &lock_status);
    if (placing.lock)
        placing.lock->lease_ms = settings->lock_ttl_ms;

    uint64_t trips = db_round_trips(worker->db);
    uint64_t lock_trips = placing.lock ? placing.lock->round_trips : 0;
    uint64_t wake_ups = placing.lock ? placing.lock->wake_ups : 0;
    if (lock_status != LOCK_OK)
        fail(&placing, lock_status == LOCK_FAILED ? FAILED : BACKEND_AWAY,
             strategy->lock->server ? strategy->lock->server->name : "lock", "its lock cannot be opened");
    else if (worker_database(worker, placing.deadline_us, placing.lock_deadline_us) != DB_OK)
        fail(&placing, BACKEND_AWAY, "postgresql", db_error(worker->db));
    else {
        observer.before_us = monotonic_us();
        create_order(&placing);
    }

    const struct order_result *result = &placing.result;
    trace->ended_us = monotonic_us();
    trace->outcome = result->outcome;
    trace->order_id = result->outcome == CREATED || result->outcome == REPLAYED ? result->order.id : 0;
    trace->tries = result->tries;
    trace_ring_add(worker->traces, trace);
    metrics_order(strategy, result->outcome, trace->ended_us - x->received_us, result->tries,
                  db_round_trips(worker->db) - trips);
    if (placing.lock)
        metrics_lock_work(strategy, placing.lock->round_trips - lock_trips,
                          placing.lock->wake_ups - wake_ups);
    if (result->lock_lost_after_commit) {
        metrics_lock_lost_after_commit(strategy);
        log_seldom(LOG_WARNING, "%s: order %lld was committed, but its lock had ended before (request %s)",
                   strategy->name, (long long)result->order.id, x->request_id);
    }
    if (result->outcome == FAILED || result->outcome == UNKNOWN || result->outcome == BACKEND_AWAY)
        log_seldom(LOG_WARNING, "%s: order %s: %s (request %s)", strategy->name,
                   outcome_name(result->outcome), result->error, x->request_id);
    reply_outcome(x, &placing);
}

/* The strategy of the query, or NULL in *ret_strategy where none was asked for; false with a reply made. */
static bool asked_strategy(struct exchange *x, const struct strategy **ret_strategy)
{
    char name[64];
    *ret_strategy = NULL;
    if (!http_query_names(x, (const char *const[]){"strategy", NULL})) {
        reply_problem(x, BAD_REQUEST, NULL, "the only parameter is strategy");
        return false;
    }
    int found = http_query(x, "strategy", name, sizeof name);
    if (found == 0)
        return true;
    if (found < 0) {
        reply_problem(x, BAD_REQUEST, NULL, "the parameter strategy is malformed");
        return false;
    }
    *ret_strategy = strategy_find(name);
    if (!*ret_strategy)
        reply_problem(x, INVALID_ORDER, NULL, "there is no strategy '%s'; valid: %s", name,
                      api_strategy_names());
    return *ret_strategy != NULL;
}

/* 1 to 255 visible ASCII characters. */
static bool asked_key(struct exchange *x, const char **ret_key)
{
    *ret_key = http_header(x, "Idempotency-Key");
    if (!*ret_key)
        return true;
    size_t length = 0;
    while ((*ret_key)[length] > ' ' && (*ret_key)[length] < 0x7f)
        length++;
    if (length >= 1 && length <= ORDER_KEY_MAX && !(*ret_key)[length] &&
        http_header_count(x, "Idempotency-Key") == 1)
        return true;
    reply_problem(x, BAD_REQUEST, NULL,
                  "Idempotency-Key must be one header of 1 to 255 visible ASCII characters");
    return false;
}

/* Reads the order; the JSON that is returned owns its strings. NULL with a reply made. */
static json_t *read_order(struct exchange *x, struct order_request *request)
{
    const struct member members[] = {
        {"product_id", INTEGER, true, &request->product_id, 1, INT64_MAX},
        {"quantity", INTEGER, true, &request->quantity, 1, 1000000},
        {"receiver_name", STRING, false, &request->receiver_name, 0, ORDER_NAME_MAX},
        {"receiver_mobile", STRING, false, &request->receiver_mobile, 0, ORDER_MOBILE_MAX},
        {0},
    };
    return api_body(x, members);
}

void orders_create(struct exchange *x, struct worker *worker)
{
    struct service *service = worker->service;
    struct order_request request = {0};
    const struct strategy *asked;
    if (!asked_strategy(x, &asked) || !asked_key(x, &request.idempotency_key))
        return;
    AUTO_JSON body = read_order(x, &request);
    if (!body)
        return;

    struct settings settings;
    int64_t deadline_us = x->received_us + service->config.order_timeout_ms * 1000;
    if (monotonic_us() >= deadline_us ||
        !gate_enter(service->gate, request.product_id, deadline_us, &settings)) {
        reply_problem(x, OVERLOADED, NULL, "the order's deadline passed while it waited for its turn");
        return;
    }
    if (asked)
        settings.strategy = asked;
    atomic_store(&worker->product_id, request.product_id);
    place(x, worker, &request, &settings);
    atomic_store(&worker->product_id, 0);
    gate_leave(service->gate, request.product_id);
}

/* The way of an order without the order: read, queued, answered by a worker, and nothing placed. What an order costs
 * beyond this is the database's; the benchmark holds its ratios against it. */
void orders_echo(struct exchange *x, struct worker *worker)
{
    (void)worker;
    struct order_request request = {0};
    AUTO_JSON body = read_order(x, &request);
    if (!body)
        return;
    struct order order = {.product_id = request.product_id,
                          .quantity = request.quantity,
                          .stock_seen = STOCK_UNSEEN,
                          .amount = "0.00",
                          .status = "echo",
                          .strategy = "none",
                          .created_at = "1970-01-01T00:00:00.000000Z"};
    http_reply_json(x, 200, order_json(&order));
}

void orders_get(struct exchange *x, struct worker *worker)
{
    int64_t id;
    char *json;
    if (!api_path_id(x, UNKNOWN_ORDER, &id))
        return;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        status = books_order(worker->db, id, &json);
    if (status == DB_OK)
        api_reply_json_text(x, json, UNKNOWN_ORDER, "order");
    else
        api_reply_db(x, worker, status);
}

void orders_list(struct exchange *x, struct worker *worker)
{
    int64_t product_id, after, limit;
    char *json;
    if (!http_query_names(x, (const char *const[]){"product_id", "after", "limit", NULL})) {
        reply_problem(x, BAD_REQUEST, NULL, "the parameters are product_id, after and limit");
        return;
    }
    if (!api_query_integer(x, "product_id", 0, 1, INT64_MAX, &product_id) ||
        !api_query_integer(x, "after", 0, 0, INT64_MAX, &after) ||
        !api_query_integer(x, "limit", 100, 1, 1000, &limit))
        return;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        status = books_orders(worker->db, product_id, after, (int)limit, &json);
    if (status == DB_OK)
        api_reply_json_text(x, json, UNKNOWN_ORDER, "order");
    else
        api_reply_db(x, worker, status);
}
