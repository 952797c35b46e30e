/* The reply to an order: an HTTP status and JSON for each of the ways in which an order can end. */
#include "service/orders/order_reply.h"

#include "service/http/problem.h"
#include "service/write_behind/accepted_order.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A jansson object would cost half of all the memory that an order allocates. Nothing here needs escaping: numbers, times,
 * and words of the service. */
void order_print(const struct order *order, char *to, size_t size)
{
    char seen[24] = "null";
    if (order->stock_seen != STOCK_UNSEEN)
        snprintf(seen, sizeof seen, "%" PRId64, order->stock_seen);
    snprintf(
        to, size,
        "{\"id\":%" PRId64 ",\"product_id\":%" PRId64 ",\"quantity\":%" PRId64
        ",\"amount\":\"%s\",\"status\":\"%s\",\"strategy\":\"%s\",\"stock_seen\":%s,\"created_at\":\"%s\"}",
        order->id, order->product_id, order->quantity, order->amount, order->status, order->strategy, seen,
        order->created_at);
}
_Static_assert(sizeof(struct order) + 256 < HTTP_ROOM, "an order fits the exchange's room");

/* Writes into the exchange's own room, because the reply to a placed order must not fail for lack of memory. */
static void reply_with(struct exchange *x, int status, const struct order *order)
{
    order_print(order, x->room, sizeof x->room);
    http_reply_body(x, status, "application/json", x->room, strlen(x->room));
}

/* A browser writes every status of 400 and more to its console, although a sale that ends is no error. So a caller can ask
 * for the status 200; the body is the same problem. */
static void answer_as_preferred(struct exchange *x)
{
    const char *preference = http_header(x, "Prefer");
    if (!preference || strcmp(preference, "sold-out=200") != 0)
        return;
    x->status = 200;
    http_set_fixed_header(x, "Preference-Applied", "sold-out=200");
}

void order_reply(struct exchange *x, const struct placing *p)
{
    const struct order_result *result = &p->result;
    json_t *members = NULL;
    if (result->outcome != ORDER_CREATED && result->outcome != ORDER_ACCEPTED &&
        result->outcome != ORDER_REPLAYED)
        members = json_pack("{s:s}", "strategy", p->strategy->name);

    switch (result->outcome) {
    case ORDER_REPLAYED: http_set_header(x, "Idempotency-Replayed", "true"); /* fall through */
    case ORDER_CREATED:
    case ORDER_ACCEPTED:
        http_set_header(x, "Location", "/orders/%lld", (long long)result->order.id);
        reply_with(x, strcmp(result->order.status, accepted_status) == 0 ? 202 : 201, &result->order);
        return;
    case ORDER_NO_SUCH_PRODUCT:
        reply_problem(x, PROBLEM_NO_SUCH_PRODUCT, members, "there is no product %lld",
                      (long long)p->request->product_id);
        return;
    case ORDER_SOLD_OUT:
        if (result->available != STOCK_UNSEEN)
            json_object_set_new(members, "available", json_integer(result->available));
        reply_problem(x, PROBLEM_SOLD_OUT, members, "fewer than %lld are left",
                      (long long)p->request->quantity);
        answer_as_preferred(x);
        return;
    case ORDER_WRONG_STOCK_KIND:
        json_object_set_new(members, "kind", json_string(result->kind));
        reply_problem(x, PROBLEM_WRONG_STOCK_KIND, members,
                      "the product's stock is of the kind %s; start a new sale with this strategy",
                      result->kind);
        return;
    case ORDER_LOCK_TIMEOUT:
        reply_problem(
            x, PROBLEM_LOCK_TIMEOUT, members,
            "other orders held the lock or the units until the wait ended; nothing was sold. Order again");
        return;
    case ORDER_CONFLICT:
        json_object_set_new(members, "tries", json_integer(result->tries));
        reply_problem(
            x, PROBLEM_CONFLICT, members,
            "other orders or a reset changed the product in each of %d tries; nothing was sold. Order again",
            result->tries);
        return;
    case ORDER_LOCK_LOST:
        reply_problem(x, PROBLEM_LOCK_LOST, members,
                      "the lock ended before the write; nothing was sold. Order again");
        return;
    case ORDER_KEY_MISMATCH:
        reply_problem(x, PROBLEM_IDEMPOTENCY_MISMATCH, members,
                      "this Idempotency-Key was used for a different order; send a new key");
        return;
    case ORDER_KEY_IN_USE:
        reply_problem(
            x, PROBLEM_IDEMPOTENCY_IN_PROGRESS, members,
            "the first request with this Idempotency-Key is still in progress; send it again in a moment");
        return;
    case ORDER_OVERLOADED:
        reply_problem(
            x, PROBLEM_OVERLOADED, members,
            "too many accepted orders wait to be written; nothing was sold. Order again in a moment");
        return;
    case ORDER_BACKEND_UNAVAILABLE:
        json_object_set_new(members, "backend", json_string(result->backend ? result->backend : "unknown"));
        reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, members,
                      "%s does not answer or refuses requests; nothing was sold. Order again later",
                      result->backend ? result->backend : "a server");
        return;
    case ORDER_UNKNOWN:
        reply_problem(
            x, PROBLEM_OUTCOME_UNKNOWN, members,
            "the server's reply was lost; order again with the same Idempotency-Key to learn the result");
        return;
    case ORDER_FAILED:
    case ORDER_GO_ON:
    case ORDER_BEHIND_FAILURE:
    case OUTCOME_COUNT: break;
    }
    reply_problem(x, PROBLEM_INTERNAL_ERROR, members, "%s", result->error);
}

void order_reply_echo(struct exchange *x, const struct order_request *request)
{
    struct order order = {.product_id = request->product_id,
                          .quantity = request->quantity,
                          .stock_seen = STOCK_UNSEEN,
                          .amount = "0.00",
                          .status = "echo",
                          .strategy = "none",
                          .created_at = "1970-01-01T00:00:00.000000Z"};
    reply_with(x, 200, &order);
}
