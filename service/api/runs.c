/* Load runs over HTTP: start, read, and end them. */
#include "service/api/api.h"

#include "service/runs/runs.h"

#include <string.h>

/* What a run may ask for at most: it has to end while people look at it. One goes on at a time, so a learner's has to
 * end sooner. */
static const struct bounds {
    int64_t strategies, instances, connections, stock, quantity, requests, duration_ms, think_ms;
} TEACHERS = {64, 4, 256, 10000, 1000, 100000, 30000, 1000}, LEARNERS = {4, 2, 32, 1000, 100, 4000, 2000, 50};

enum { TEACHERS_RUN_MS = 900000 };

json_t *runs_limits(const struct exchange *x)
{
    const struct bounds *most = access_teaches(x) ? &TEACHERS : &LEARNERS;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "strategies", (json_int_t)most->strategies,
                     "instances", (json_int_t)most->instances, "connections", (json_int_t)most->connections,
                     "stock", (json_int_t)most->stock, "quantity", (json_int_t)most->quantity, "requests",
                     (json_int_t)most->requests, "duration_ms", (json_int_t)most->duration_ms, "think_ms",
                     (json_int_t)most->think_ms);
}

static bool are_strategies(struct exchange *x, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name) {
        const struct strategy *strategy = api_strategy(x, "strategies", json_string_value(name));
        if (!strategy || !access_uses(x, strategy))
            return false;
    }
    return true;
}

/* Replies with TEXT, which it takes over; NULL: there is no such run. */
static void reply_text(struct exchange *x, int status, char *text, int64_t id)
{
    if (text)
        http_reply_body(x, status, "application/json", text, strlen(text));
    else
        reply_problem(x, PROBLEM_NOT_FOUND, NULL,
                      "run %lld does not exist, or the service no longer keeps it", (long long)id);
}

static void reply_run(struct exchange *x, int status, int64_t id)
{
    reply_text(x, status, runs_text(((struct service *)x->app)->runs, id), id);
}

void runs_create(struct exchange *x, struct worker *worker)
{
    struct service *service = worker->service;
    json_t *names = NULL;
    struct run_order order = {
        .product_id = 1, .instances = 1, .connections = 16, .stock = 100, .quantity = 1, .duration_ms = 1000};
    const struct bounds *most = access_teaches(x) ? &TEACHERS : &LEARNERS;
    const struct member members[] = {
        {"strategies", BODY_NAMES, true, &names, 1, most->strategies},
        {"product_id", BODY_INTEGER, false, &order.product_id, 1, INT64_MAX},
        {"instances", BODY_INTEGER, false, &order.instances, 1, most->instances},
        {"connections", BODY_INTEGER, false, &order.connections, 1, most->connections},
        {"stock", BODY_INTEGER, false, &order.stock, 1, most->stock},
        {"quantity", BODY_INTEGER, false, &order.quantity, 1, most->quantity},
        {"requests", BODY_INTEGER, false, &order.requests, 0, most->requests},
        {"duration_ms", BODY_INTEGER, false, &order.duration_ms, 100, most->duration_ms},
        {"think_ms", BODY_INTEGER, false, &order.think_ms, 0, most->think_ms},
        {0},
    };
    AUTO_JSON body = api_body(x, members);
    if (!body || !are_strategies(x, names) || !access_owns(x, order.product_id))
        return;
    order.longest_ms = access_teaches(x) ? TEACHERS_RUN_MS : service->config.learner_run_ms;
    order.own_settings = product_has_own(service->orders.queue, order.product_id);
    if (http_address_has_limit(x))
        http_client_address(x, order.address, sizeof order.address);
    if (order.quantity > order.stock) {
        reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "quantity"),
                      "quantity is more than stock, so nothing can be sold; order fewer units");
        return;
    }
    int64_t id = 0;
    order.strategies = json_deep_copy(names); /* another thread will read them */
    switch (runs_start(service->runs, &order, (uint16_t)atomic_load(&service->port), &id)) {
    case RUN_STARTED:
        http_set_header(x, "Location", "/runs/%lld", (long long)id);
        reply_run(x, 202, id);
        return;
    case RUN_GOES_ON:
        reply_problem(
            x, PROBLEM_RUN_IN_PROGRESS, json_pack("{s:I}", "run", (json_int_t)id),
            "run %lld is in progress, and only one can run at a time; ask again within %d seconds to keep your place in the queue",
            (long long)id, RUN_PLACE_MS / 1000);
        break;
    case RUN_WAITS:
        reply_problem(
            x, PROBLEM_RUN_IN_PROGRESS, json_pack("{s:I}", "run", (json_int_t)id),
            "another product asked for a run first; ask again within %d seconds to keep your place in the queue",
            RUN_PLACE_MS / 1000);
        break;
    case RUN_IMPOSSIBLE:
        reply_problem(x, PROBLEM_OVERLOADED, NULL,
                      "the system cannot start another process for the run; try again in a moment");
        break;
    }
    json_decref(order.strategies);
}

void runs_get(struct exchange *x, struct worker *worker)
{
    (void)worker;
    int64_t id;
    if (api_path_id(x, PROBLEM_NOT_FOUND, &id))
        reply_run(x, 200, id);
}

void runs_get_traces(struct exchange *x, struct worker *worker)
{
    (void)worker;
    int64_t id;
    if (api_path_id(x, PROBLEM_NOT_FOUND, &id))
        reply_text(x, 200, runs_traces(((struct service *)x->app)->runs, id), id);
}

void runs_delete(struct exchange *x, struct worker *worker)
{
    int64_t id;
    if (!api_path_id(x, PROBLEM_NOT_FOUND, &id) ||
        (!access_teaches(x) && !access_owns(x, runs_product(worker->service->runs, id))))
        return;
    (void)runs_cancel(worker->service->runs, id);
    reply_run(x, 200, id);
}
