/* The database for all calls but orders: its deadlines, and the replies with what it answered. */
#include "service/api/api.h"

#include "base/clock.h"

#include <string.h>

enum db_status api_database(struct worker *worker)
{
    int64_t now_us = monotonic_us();
    return worker_database(worker, now_us + worker->service->config.order_timeout_ms * 1000,
                           now_us + product_settings(worker->service->orders.queue, 0).lock_wait_ms * 1000);
}

void api_reply_db(struct exchange *x, struct worker *worker, enum db_status status)
{
    switch (status) {
    case DB_AWAY:
    case DB_REFUSED:
    case DB_UNKNOWN:
        reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, json_pack("{s:s}", "backend", "postgresql"),
                      "PostgreSQL does not answer or refuses connections; start it, or check DATABASE_URL");
        return;
    case DB_LOCK_TIMEOUT:
    case DB_TIMEOUT:
    case DB_SERIALIZATION:
    case DB_DEADLOCK:
        reply_problem(x, PROBLEM_LOCK_TIMEOUT, NULL,
                      "the database was busy until the deadline; try again in a moment");
        return;
    case DB_OUT_OF_RANGE:
        reply_problem(x, PROBLEM_INVALID_ORDER, NULL,
                      "a number is too large for the database; send a smaller one");
        return;
    default: reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "%s", db_error(worker->db)); return;
    }
}

void api_reply_json_text(struct exchange *x, char *json, enum problem missing, const char *what)
{
    if (json)
        http_reply_body(x, 200, "application/json", json, strlen(json));
    else
        reply_problem(x, missing, NULL, "no %s has this id", what);
}
