/* The state of the service over HTTP: health, readiness, metrics, traces, and the API description. */
#include "base/clock.h"
#include "service/api/api.h"

#include "service/api/lock_servers.h"
#include "service/orders/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READY_US = 1000000 }; /* a server that does not answer within a second is away */

extern const char openapi_yaml[]; /* openapi.S */

void health_get(struct exchange *x, struct worker *worker)
{
    (void)worker;
    http_reply_json(x, 200, json_pack("{s:s}", "status", "alive"));
}

void ready_get(struct exchange *x, struct worker *worker)
{
    int64_t until_us = monotonic_us() + READY_US;
    bool ready = worker_database(worker, until_us, until_us) == DB_OK && db_ping(worker->db) == DB_OK;
    json_t *backends = json_pack("{s:{s:b}}", "postgresql", "up", ready);
    lock_servers_ask();
    for (size_t i = 0; lock_server_at(i); i++) {
        char reason[250];
        bool up = lock_server_is_up(lock_server_at(i), reason, sizeof reason);
        json_object_set_new(backends, lock_server_at(i)->name,
                            json_pack("{s:b, s:s?}", "up", up, "reason", up ? NULL : reason));
    }
    json_t *states = json_pack("{s:b, s:o}", "ready", ready, "backends", backends);
    if (ready) {
        http_reply_json(x, 200, states);
    } else {
        json_object_set_new(states, "backend", json_string("postgresql"));
        reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, states,
                      "PostgreSQL does not answer or refuses connections; start it, or check DATABASE_URL");
    }
}

void metrics_get(struct exchange *x, struct worker *worker)
{
    (void)worker;
    struct service *service = x->app;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to) {
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
        return;
    }
    const struct admission_load load = admission_load(service->orders.queue, 0);
    metrics_print(to);
    writer_print_metrics(service->orders.writer, to);
    fprintf(to,
            "# HELP oversell_queue_depth Orders that wait for a worker.\n# TYPE oversell_queue_depth gauge\n"
            "oversell_queue_depth %zu\n",
            load.ready);
    fprintf(to,
            "# HELP oversell_unsold_orders Failed orders whose units are not back in the stock yet.\n"
            "# TYPE oversell_unsold_orders gauge\noversell_unsold_orders %d\n",
            unsold_list_count(service->orders.unsold, 0));
    fprintf(to,
            "# HELP oversell_workers Order workers, each with a separate connection.\n"
            "# TYPE oversell_workers gauge\noversell_workers %d\n",
            (int)service->config.workers);
    fprintf(
        to,
        "# HELP oversell_workers_busy Order workers that place an order now.\n# TYPE oversell_workers_busy gauge\n"
        "oversell_workers_busy %d\n",
        admission_busy(service->orders.queue));
    fprintf(
        to,
        "# HELP oversell_orders_waiting Orders that wait because their product has reached its limit or is being changed.\n"
        "# TYPE oversell_orders_waiting gauge\noversell_orders_waiting %zu\n",
        load.held);
    fprintf(
        to,
        "# HELP oversell_http_connections Open HTTP connections.\n# TYPE oversell_http_connections gauge\n"
        "oversell_http_connections %u\n",
        http_connections());
    fprintf(
        to,
        "# HELP oversell_lock_sessions_lost_total Sessions with a lock server that ended under this process.\n"
        "# TYPE oversell_lock_sessions_lost_total counter\n");
    for (size_t i = 0; lock_server_at(i); i++)
        if (lock_server_at(i)->sessions_lost)
            fprintf(to, "oversell_lock_sessions_lost_total{backend=\"%s\"} %" PRIu64 "\n",
                    lock_server_at(i)->name, lock_server_at(i)->sessions_lost());
    fclose(to);
    http_reply_body(x, 200, "text/plain; version=0.0.4; charset=utf-8", text, size);
}

void traces_get(struct exchange *x, struct worker *worker)
{
    struct service *service = worker->service;
    int64_t limit, product_id;
    char format[16] = "json";
    if (!http_query_names(x, (const char *const[]){"limit", "format", "product_id", NULL})) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL,
                      "unknown query parameter; valid: limit, format, product_id");
        return;
    }
    if (!api_query_integer(x, "limit", 100, 1, 1000, &limit) ||
        !api_query_integer(x, "product_id", 0, 1, INT64_MAX, &product_id))
        return;
    int found = http_query(x, "format", format, sizeof format);
    bool chrome = strcmp(format, "chrome") == 0;
    if (found < 0 || (!chrome && strcmp(format, "json") != 0)) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the parameter format must be json or chrome");
        return;
    }
    const struct trace_query query = {.product_id = product_id, .limit = (int)limit};
    json_t *json = (chrome ? traces_chrome_json : traces_json)(
        service->orders.traces, (int)service->config.workers, &query, service->instance);
    http_reply_json(x, 200, json);
}

void openapi_get(struct exchange *x, struct worker *worker)
{
    (void)worker;
    char *text = strdup(openapi_yaml);
    if (text)
        http_reply_body(x, 200, "application/yaml", text, strlen(text));
    else
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
}
