/* GET /live: all that an open page shows of a product, in one call that many pages can make every second. */
#include "base/clock.h"
#include "service/api/api.h"

#include "service/write_behind/reconcile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACES_MOST = 1000 };

static void audit_key(int64_t product_id, char *ret_key, size_t size)
{
    snprintf(ret_key, size, "audit %" PRId64, product_id);
}

void live_forget(struct service *service, int64_t product_id)
{
    char key[64];
    audit_key(product_id, key, sizeof key);
    response_cache_forget(service->responses, key);
}

/* The product's audit as JSON text, which the caller frees. NULL: *ret_problem is the name of the problem. */
static char *audit_text(struct worker *worker, int64_t product_id, const char **ret_problem)
{
    struct service *service = worker->service;
    char key[64], *text;
    audit_key(product_id, key, sizeof key);
    if ((text = response_cache_get(service->responses, key)) != NULL)
        return text;
    uint64_t generation = response_cache_generation(service->responses);
    int64_t begun_us = monotonic_us();
    struct reconciliation r;
    enum reconciled result = api_audit(worker, product_id, &r, &text);
    if (text)
        response_cache_put(service->responses, key, text, monotonic_us() - begun_us, generation);
    else
        *ret_problem = result == RECONCILE_NO_PRODUCT ? "no-such-product" : "backend-unavailable";
    return text;
}

/* The traces, to be freed, as one text: how many orders had been traced when they were read, which may be a little
 * fewer than now (*ret_traced), a space, and the JSON. All up to that count are in it; a later one may be too. */
static char *traces_text(struct worker *worker, const struct trace_query *query, int64_t *ret_traced)
{
    struct service *service = worker->service;
    char key[64], *text;
    snprintf(key, sizeof key, "traces %" PRId64 " %d %" PRIu64, query->product_id, query->limit,
             query->after);
    if ((text = response_cache_get(service->responses, key)) == NULL) {
        uint64_t generation = response_cache_generation(service->responses);
        int64_t begun_us = monotonic_us();
        uint64_t traced = traces_count();
        json_t *json = traces_json(service->orders.traces, (int)service->config.workers, query,
                                   service->instance);
        char *traces = json ? json_dumps(json, JSON_COMPACT) : NULL;
        json_decref(json);
        if (!traces || asprintf(&text, "%" PRIu64 " %s", traced, traces) < 0)
            text = NULL;
        free(traces);
        if (text)
            response_cache_put(service->responses, key, text, monotonic_us() - begun_us, generation);
    }
    if (text)
        *ret_traced = strtoll(text, NULL, 10);
    return text;
}

/* The part that is computed for every call; the rest is cached. */
static char *state_text(const struct exchange *x, int64_t product_id, int64_t traced, const char *problem)
{
    struct service *service = x->app;
    struct settings settings = product_settings(service->orders.queue, product_id);
    int64_t owns = access_sandbox(x);
    json_t *state = json_pack(
        "{s:s, s:I, s:I, s:I, s:s?, s:{s:s, s:I, s:I, s:I}, s:o, s:o}", "instance", service->instance,
        "now_us", (json_int_t)monotonic_us(), "sale_us",
        (json_int_t)sale_begun_us(&service->sales, product_id), "traced", (json_int_t)traced, "problem",
        problem, "settings", "name", settings.strategy->name, "lock_ttl_ms", (json_int_t)settings.lock_ttl_ms,
        "lock_wait_ms", (json_int_t)settings.lock_wait_ms, "think_ms", (json_int_t)settings.think_ms, "run",
        runs_summary(service->runs), "owns", owns ? json_integer(owns) : json_null());
    char *text = state ? json_dumps(state, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(state);
    return text;
}

void live_get(struct exchange *x, struct worker *worker)
{
    int64_t product_id, wanted, traced, since, audited;
    if (!http_query_names(x,
                          (const char *const[]){"product_id", "traces", "traced", "since", "audit", NULL})) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL,
                      "unknown query parameter; valid: product_id, traces, traced, since, audit");
        return;
    }
    if (!api_query_integer(x, "product_id", 1, 1, INT64_MAX, &product_id) ||
        !api_query_integer(x, "traces", 0, 0, TRACES_MOST, &wanted) ||
        !api_query_integer(x, "traced", -1, 0, INT64_MAX, &traced) ||
        !api_query_integer(x, "since", 0, 0, INT64_MAX, &since) ||
        !api_query_integer(x, "audit", 1, 0, 1, &audited))
        return;
    const char *problem = NULL;
    int64_t now_traced = (int64_t)traces_count();
    bool news = wanted > 0 && now_traced != traced;
    char *audit = audited ? audit_text(worker, product_id, &problem) : NULL;
    /* A number that this process has not reached yet is from an earlier process: then the caller has none of our traces. */
    const struct trace_query query = {product_id, (int)wanted, since <= now_traced ? (uint64_t)since : 0};
    char *traces = news ? traces_text(worker, &query, &now_traced) : NULL;
    char *state = state_text(x, product_id, now_traced, problem), *reply = NULL;
    /* The three are JSON already; the state's closing brace makes room for the other two. */
    int size = state ? asprintf(&reply, "%.*s,\"books\":%s,\"traces\":%s}", (int)strlen(state) - 1, state,
                                audit ? audit : "null", traces ? strchr(traces, ' ') + 1 : "null")
                     : -1;
    free(audit);
    free(traces);
    free(state);
    if (size >= 0)
        http_reply_body(x, 200, "application/json", reply, (size_t)size);
    else
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
}
