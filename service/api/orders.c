/* POST /orders reads an order and passes it to the order pipeline; GET reads one order or lists them. */
#include "base/clock.h"
#include "service/api/api.h"

#include "base/json.h"
#include "db/orders/write_behind.h"
#include "db/products/audit.h"
#include "service/classroom/sandbox.h"
#include "service/orders/order_job.h"
#include "service/orders/order_reply.h"
#include "service/write_behind/accepted_order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest Idempotency-Key of a learner: it is stored with the id of the learner's product. */
enum { LEARNER_KEY_MAX = ORDER_KEY_MAX - 20 };

/* The strategy of the query, or NULL in *ret_strategy where none was asked for; false with a reply made. */
static bool asked_strategy(struct exchange *x, const struct strategy **ret_strategy)
{
    char name[64];
    *ret_strategy = NULL;
    if (!http_query_names(x, (const char *const[]){"strategy", NULL})) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "unknown query parameter; valid: strategy");
        return false;
    }
    int found = http_query(x, "strategy", name, sizeof name);
    if (found == 0)
        return true;
    if (found < 0) {
        reply_problem(
            x, PROBLEM_BAD_REQUEST, NULL,
            "the query parameter strategy is given twice, too long or wrongly encoded; send the name of one strategy");
        return false;
    }
    *ret_strategy = api_strategy(x, NULL, name);
    return *ret_strategy && access_uses(x, *ret_strategy);
}

/* 1 to 255 visible ASCII characters, or fewer of a learner. */
static bool asked_key(struct exchange *x, const char **ret_key)
{
    *ret_key = http_header(x, "Idempotency-Key");
    if (!*ret_key)
        return true;
    size_t length = 0, most = access_sandbox(x) ? LEARNER_KEY_MAX : ORDER_KEY_MAX;
    while ((*ret_key)[length] > ' ' && (*ret_key)[length] < 0x7f)
        length++;
    if (length >= 1 && length <= most && !(*ret_key)[length] && http_header_count(x, "Idempotency-Key") == 1)
        return true;
    reply_problem(x, PROBLEM_BAD_REQUEST, NULL,
                  "Idempotency-Key must be one header of 1 to %zu visible ASCII characters", most);
    return false;
}

/* Reads the order, and sees that in a classroom its product is the caller's; the JSON that is returned owns its strings.
 * NULL with a reply made. */
static json_t *read_order(struct exchange *x, struct order_request *request)
{
    const struct member members[] = {
        {"product_id", BODY_INTEGER, true, &request->product_id, 1, INT64_MAX},
        {"quantity", BODY_INTEGER, true, &request->quantity, 1, 1000000},
        {"receiver_name", BODY_STRING, false, &request->receiver_name, 0, ORDER_NAME_MAX},
        {"receiver_mobile", BODY_STRING, false, &request->receiver_mobile, 0, ORDER_MOBILE_MAX},
        {0},
    };
    json_t *body = api_body(x, members);
    if (body && !access_orders(x, request->product_id)) {
        json_decref(body);
        return NULL;
    }
    return body;
}

/* Counts a learner's order, and makes its key the learner's alone: another one may use the same. No client's key contains a space.
 * BODY owns the new key. False with a reply made: out of memory. */
static bool note_learner(struct exchange *x, json_t *body, struct order_request *request)
{
    int64_t sandbox = access_sandbox(x);
    sandbox_count_order(((struct service *)x->app)->sandboxes, sandbox);
    if (!request->idempotency_key)
        return true;
    json_t *key = json_sprintf("%lld %s", (long long)sandbox, request->idempotency_key);
    if (json_object_set_new(body, "idempotency_key", key) == 0) {
        request->idempotency_key = json_string_value(key);
        return true;
    }
    reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
    return false;
}

void orders_create(struct exchange *x, struct worker *worker)
{
    (void)worker;
    struct order_request request = {0};
    const struct strategy *strategy;
    json_t *body = NULL;
    if (asked_strategy(x, &strategy) && asked_key(x, &request.idempotency_key))
        body = read_order(x, &request);
    bool is_learners = body && access_sandbox(x);
    if (!body || (is_learners && !note_learner(x, body, &request))) {
        json_decref(body);
        http_finish(x);
        return;
    }
    bool has_strings = request.receiver_name || request.receiver_mobile ||
                       (is_learners && request.idempotency_key);
    if (!has_strings) {
        json_decref(body); /* a thousand orders may wait, and most have no strings */
        body = NULL;
    }
    order_job_queue(&((struct service *)x->app)->orders, x, &request, body, strategy);
}

/* Takes the way of an order but places none: the service reads and queues the request, and a worker answers it. The benchmark
 * compares orders with it; the difference is the cost of the database and the locks. */
void orders_echo(struct exchange *x, struct worker *worker)
{
    (void)worker;
    struct order_request request = {0};
    json_t *body = read_order(x, &request);
    if (body)
        order_job_queue_echo(&((struct service *)x->app)->orders, x, &request);
    else
        http_finish(x);
    json_decref(body);
}

/* A receiver is a person, so only the teacher and the owner of the product see name and number. */
static int64_t receivers_shown(const struct exchange *x)
{
    if (access_teaches(x))
        return RECEIVERS_OF_ALL;
    return access_sandbox(x) ? access_sandbox(x) : RECEIVERS_OF_NONE;
}

/* Text or null. */
static json_t *text_json(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* As view_order has it; NULL when out of memory. */
static json_t *accepted_json(const struct accepted_order *from, int64_t receivers_of)
{
    struct order order;
    order_of_accepted(from, &order);
    json_t *item = json_pack("{s:I, s:I, s:s, s:I, s:s, s:s, s:n, s:n}", "product_id",
                             (json_int_t)order.product_id, "quantity", (json_int_t)order.quantity, "price",
                             from->price, "stock_seen", (json_int_t)order.stock_seen, "strategy",
                             order.strategy, "instance", from->instance, "read_at", "committed_at");
    char text[HTTP_ROOM];
    order_print(&order, text, sizeof text);
    json_error_t error;
    json_t *json = json_read(text, strlen(text), 0, &error);
    if (!json) {
        json_decref(item);
        return NULL;
    }
    bool shown = receivers_of == RECEIVERS_OF_ALL || receivers_of == from->product_id;
    json_t *more = json_pack("{s:o, s:o, s:[o]}", "receiver_name",
                             text_json(shown ? from->receiver_name : NULL), "receiver_mobile",
                             text_json(shown ? from->receiver_mobile : NULL), "items", item);
    if (json_object_update_new(json, more) == 0)
        return json;
    json_decref(json);
    return NULL;
}

/* Is there a product with stock in Redis? */
static bool uses_redis(struct worker *worker)
{
    int64_t id;
    size_t count = 0;
    return products_behind(worker->db, 0, &id, 1, &count) == DB_OK && count > 0;
}

/* Replies with the order where it is still in Redis, or that Redis cannot tell; false: it is not there. */
static bool reply_accepted(struct exchange *x, struct worker *worker, int64_t id)
{
    struct redis_stock *stock = worker_stock(worker);
    struct stream_batch *found = calloc(1, sizeof *found);
    int64_t deadline_us = monotonic_us() + worker->service->config.order_timeout_ms * 1000;
    bool asked = stock && found && redis_stream_find(stock, deadline_us, id, found) == LOCK_OK;
    if (asked && found->count == 1 && !order_is_outdated(worker->db, &found->orders[0]))
        http_reply_json(x, 200, accepted_json(&found->orders[0], receivers_shown(x)));
    else if (!asked && uses_redis(worker))
        reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, json_pack("{s:s}", "backend", "redis"),
                      "Redis, which may hold the order, does not answer; start it, or check REDIS_URL");
    if (found)
        stream_release(found);
    free(found);
    return x->status != 0;
}

static enum db_status read_order_row(const struct exchange *x, struct worker *worker, int64_t id,
                                     char **ret_json)
{
    *ret_json = NULL;
    enum db_status status = api_database(worker);
    return status == DB_OK ? view_order(worker->db, id, receivers_shown(x), ret_json) : status;
}

void orders_get(struct exchange *x, struct worker *worker)
{
    int64_t id;
    char *json;
    if (!api_path_id(x, PROBLEM_NO_SUCH_ORDER, &id))
        return;
    enum db_status status = read_order_row(x, worker, id, &json);
    if (!json && redis_stock_is_configured()) {
        if (reply_accepted(x, worker, id))
            return;
        status = read_order_row(x, worker, id, &json); /* the writer may have moved it in between */
    }
    if (status == DB_OK)
        api_reply_json_text(x, json, PROBLEM_NO_SUCH_ORDER, "order");
    else
        api_reply_db(x, worker, status);
}

void orders_list(struct exchange *x, struct worker *worker)
{
    int64_t product_id, after, limit;
    char *json;
    if (!http_query_names(x, (const char *const[]){"product_id", "after", "limit", NULL})) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL,
                      "unknown query parameter; valid: product_id, after, limit");
        return;
    }
    if (!api_query_integer(x, "product_id", 0, 1, INT64_MAX, &product_id) ||
        !api_query_integer(x, "after", 0, 0, INT64_MAX, &after) ||
        !api_query_integer(x, "limit", 100, 1, 1000, &limit))
        return;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        status = view_orders(worker->db, product_id, after, (int)limit, receivers_shown(x), &json);
    if (status == DB_OK)
        api_reply_json_text(x, json, PROBLEM_NO_SUCH_ORDER, "order");
    else
        api_reply_db(x, worker, status);
}
