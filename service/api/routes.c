/* The table of routes, what every request is checked for, and strict reading of bodies and parameters. */
#include "service/api/api.h"
#include "base/clock.h"

#include "base/json.h"
#include "service/api/router.h"
#include "service/http/host_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct route routes[] = {
    {"GET",    "/",                 LANE_HTTP,    ANYBODY, page_get},
    {"GET",    "/page/:",           LANE_HTTP,    ANYBODY, page_get_file},
    {"GET",    "/live",             LANE_READS,   ANYBODY, live_get},
    {"GET",    "/classroom",        LANE_HTTP,    ANYBODY, classroom_get},
    {"POST",   "/sandboxes",        LANE_CHANGES, LEARNER, sandboxes_create},
    {"GET",    "/sandboxes",        LANE_READS,   TEACHER, sandboxes_list},
    {"DELETE", "/sandboxes/:",      LANE_READS,   TEACHER, sandboxes_delete}, /* waits for no change */
    {"POST",   "/orders",           LANE_ORDERS,  BUYER,   orders_create},
    {"POST",   "/echo",             LANE_ORDERS,  BUYER,   orders_echo},
    {"GET",    "/orders",           LANE_READS,   ANYBODY, orders_list},
    {"GET",    "/orders/:",         LANE_READS,   ANYBODY, orders_get},
    {"GET",    "/products",         LANE_READS,   ANYBODY, products_list},
    {"GET",    "/products/:",       LANE_READS,   ANYBODY, products_get},
    {"PUT",    "/products/:",       LANE_CHANGES, TEACHER, products_replace},
    {"POST",   "/products/:/reset", LANE_CHANGES, OWNER,   products_set_stock},
    {"GET",    "/audit",            LANE_READS,   ANYBODY, audit_get},
    {"GET",    "/strategies",       LANE_READS,   ANYBODY, strategies_list},
    {"GET",    "/strategies/:",     LANE_READS,   ANYBODY, strategies_get},
    {"GET",    "/strategy",         LANE_HTTP,    ANYBODY, strategy_get},
    {"PUT",    "/strategy",         LANE_CHANGES, OWNER,   strategy_set},
    {"POST",   "/locks/:/hold",     LANE_HOLDS,   TEACHER, locks_hold},
    {"POST",   "/runs",             LANE_CHANGES, OWNER,   runs_create},
    {"GET",    "/runs/:",           LANE_HTTP,    ANYBODY, runs_get},
    {"DELETE", "/runs/:",           LANE_CHANGES, OWNER,   runs_delete},
    {"GET",    "/runs/:/traces",    LANE_HTTP,    ANYBODY, runs_get_traces},
    {"GET",    "/steps",            LANE_HTTP,    ANYBODY, steps_page},
    {"POST",   "/steps",            LANE_STEPS,   OWNER,   steps_make},
    {"POST",   "/steps/search",     LANE_STEPS,   OWNER,   steps_search},
    {"GET",    "/traces",           LANE_READS,   ANYBODY, traces_get},
    {"GET",    "/metrics",          LANE_HTTP,    ANYBODY, metrics_get},
    {"GET",    "/healthz",          LANE_HTTP,    ANYBODY, health_get},
    {"GET",    "/readyz",           LANE_READS,   ANYBODY, ready_get},
    {"GET",    "/openapi.yaml",     LANE_HTTP,    ANYBODY, openapi_get},
    {0},
};
/* clang-format on */

/* A page of another origin can send us requests through its visitor's browser, which then says where it is from. */
static bool is_foreign_origin(const struct exchange *x)
{
    const char *origin = http_header(x, "Origin"), *host = http_header(x, "Host");
    if (!origin)
        return false;
    const char *scheme_end = strstr(origin, "://");
    return !host || !scheme_end || strcasecmp(scheme_end + 3, host) != 0;
}

/* The Host header has a name that the service does not accept, or there are several. (HTTP/1.0 allows none.) */
static bool is_foreign_host(const struct exchange *x, const struct service *service)
{
    const char *host = http_header(x, "Host");
    return host &&
           (http_header_count(x, "Host") > 1 || !host_is_allowed(host, service->config.allowed_hosts));
}

static bool is_json(const struct exchange *x)
{
    const char *type = http_header(x, "Content-Type");
    return type && strncasecmp(type, "application/json", 16) == 0 &&
           (type[16] == '\0' || strchr("; \t", type[16]));
}

/* What is wrong with a request whatever it asks for; true where a reply was made. */
static bool refused(struct exchange *x, struct service *service)
{
    char allow[64];
    switch (route_find(routes, x->method, x->path, &x->route, x->argument, sizeof x->argument, allow,
                       sizeof allow)) {
    case ROUTED: break;
    case NO_SUCH_PATH: reply_problem(x, PROBLEM_NOT_FOUND, NULL, "no resource has this path"); return true;
    case NO_SUCH_METHOD:
        http_set_header(x, "Allow", "%s", allow);
        reply_problem(x, PROBLEM_METHOD_NOT_ALLOWED, NULL, "this path takes %s", allow);
        return true;
    }
    bool changes = strcmp(x->route->method, "GET") != 0;
    if (is_foreign_host(x, service))
        reply_problem(
            x, PROBLEM_FORBIDDEN_ORIGIN, NULL,
            "the service does not accept the name in the Host header; call the service by its address, or start it "
            "with --allowed-hosts NAME");
    else if (changes && is_foreign_origin(x))
        reply_problem(
            x, PROBLEM_FORBIDDEN_ORIGIN, NULL,
            "the Origin header of this call differs from its Host header; open the page at the address that it calls");
    else if (access_allows(x, service, x->route->access) && changes &&
             strcmp(x->route->method, "DELETE") != 0 && !is_json(x))
        reply_problem(x, PROBLEM_UNSUPPORTED_MEDIA_TYPE, NULL,
                      "send the header Content-Type: application/json");
    return x->status != 0;
}

bool service_dispatch(struct exchange *x)
{
    struct service *service = x->app;
    if (refused(x, service))
        return true;
    if (atomic_load(&service->draining)) {
        x->close = true;
        reply_problem(x, PROBLEM_OVERLOADED, NULL, "the service is shutting down");
        return true;
    }
    enum lane lane = x->route->lane;
    if (lane == LANE_HTTP) {
        x->route->handle(x, NULL);
        return true;
    }
    http_hand_over(x);
    if (lane == LANE_ORDERS) {
        x->route->handle(x, NULL);
    } else if (!queue_push(service->queues[lane], x)) {
        reply_problem(x, PROBLEM_OVERLOADED, NULL, "%zu requests are waiting already",
                      queue_depth(service->queues[lane]));
        http_finish(x);
    }
    return false;
}

void service_refuse(struct exchange *x, int status, const char *detail)
{
    reply_problem(x, status == 413 ? PROBLEM_PAYLOAD_TOO_LARGE : PROBLEM_BAD_REQUEST, NULL, "%s", detail);
}

/* How many characters (code points) a string of valid UTF-8 has; 0 for NULL. */
static int64_t characters(const char *text)
{
    int64_t count = 0;
    for (; text && *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static bool are_strings(const json_t *array)
{
    size_t i;
    json_t *value;
    json_array_foreach(array, i, value) {
        if (!json_is_string(value))
            return false;
    }
    return json_is_array(array);
}

/* Reads one member; false with a reply made. */
static bool read_member(struct exchange *x, const struct member *member, json_t *value)
{
    if (!value || (json_is_null(value) && !member->required && member->type == STRING)) {
        if (member->required)
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s is missing", member->name);
        return !member->required;
    }
    if (member->type == INTEGER) {
        int64_t number = json_integer_value(value);
        if (!json_is_integer(value))
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s must be an integer", member->name);
        else if (number < member->least || number > member->most)
            reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", member->name),
                          "%s must be from %lld to %lld", member->name, (long long)member->least,
                          (long long)member->most);
        else
            *(int64_t *)member->to = number;
    } else if (member->type == BOOLEAN) {
        if (!json_is_boolean(value))
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s must be true or false", member->name);
        else
            *(bool *)member->to = json_is_true(value);
    } else if (member->type == NAMES) {
        int64_t count = (int64_t)json_array_size(value);
        if (!are_strings(value))
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s must be an array of strings",
                          member->name);
        else if (count < member->least || count > member->most)
            reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", member->name),
                          "%s must have from %lld to %lld of them", member->name, (long long)member->least,
                          (long long)member->most);
        else
            *(json_t **)member->to = value;
    } else {
        int64_t length = characters(json_string_value(value));
        if (!json_is_string(value))
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the member %s must be a string", member->name);
        else if (length < member->least || length > member->most)
            reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", member->name),
                          "%s must have from %lld to %lld characters", member->name, (long long)member->least,
                          (long long)member->most);
        else
            *(const char **)member->to = json_string_value(value);
    }
    return x->status == 0;
}

static bool is_member(const struct member *members, const char *name)
{
    for (; members->name; members++)
        if (strcmp(members->name, name) == 0)
            return true;
    return false;
}

json_t *api_body(struct exchange *x, const struct member *members)
{
    json_error_t error;
    if (x->body && memchr(x->body, '\0', x->body_size)) { /* jansson passes over some of them */
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the body is not JSON: it contains a NUL byte");
        return NULL;
    }
    json_t *body = json_read(x->body ? x->body : "", x->body_size, JSON_REJECT_DUPLICATES, &error);
    if (!body && json_error_code(&error) == json_error_out_of_memory) {
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
        return NULL;
    }
    if (!body) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the body is not JSON: %s at line %d, column %d",
                      error.text, error.line, error.column);
        return NULL;
    }
    if (!json_is_object(body)) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the body must be a JSON object");
        goto bad;
    }
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value) {
        if (!is_member(members, name)) {
            reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "there is no member '%.60s'", name);
            goto bad;
        }
    }
    for (; members->name; members++)
        if (!read_member(x, members, json_object_get(body, members->name)))
            goto bad;
    return body;
bad:
    json_decref(body);
    return NULL;
}

/* A positive decimal number without signs or leading zeros that fits 63 bits. */
static bool parse_id(const char *text, int64_t *ret_id)
{
    if (text[0] < '1' || text[0] > '9' || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *ret_id = strtoll(text, NULL, 10);
    return errno == 0;
}

bool api_path_id(struct exchange *x, enum problem problem, int64_t *ret_id)
{
    if (parse_id(x->argument, ret_id))
        return true;
    reply_problem(x, problem, NULL, "'%s' is not an id", x->argument);
    return false;
}

bool api_query_integer(struct exchange *x, const char *name, int64_t preset, int64_t least, int64_t most,
                       int64_t *ret_value)
{
    char text[32], *end;
    int found = http_query(x, name, text, sizeof text);
    *ret_value = preset;
    if (found == 0)
        return true;
    errno = 0;
    if (found > 0 && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) {
        *ret_value = strtoll(text, &end, 10);
        if (!errno && !*end && *ret_value >= least && *ret_value <= most)
            return true;
    }
    reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "the parameter %s must be an integer from %lld to %lld", name,
                  (long long)least, (long long)most);
    return false;
}

const char *api_strategy_names(void)
{
    static _Thread_local char names[2048];
    size_t used = 0;
    for (size_t i = 0; i < strategy_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 strategies[i].name);
    return names;
}

void api_reply_db(struct exchange *x, struct worker *worker, enum db_status status)
{
    switch (status) {
    case DB_AWAY:
    case DB_REFUSED:
    case DB_UNKNOWN:
        reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, json_pack("{s:s}", "backend", "postgresql"),
                      "postgresql cannot be reached or does not serve");
        return;
    case DB_LOCK_TIMEOUT:
    case DB_TIMEOUT:
    case DB_SERIALIZATION:
    case DB_DEADLOCK:
        reply_problem(x, PROBLEM_LOCK_TIMEOUT, NULL, "the database was busy until the deadline");
        return;
    case DB_OUT_OF_RANGE: reply_problem(x, PROBLEM_INVALID_ORDER, NULL, "a number does not fit"); return;
    default: reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "%s", db_error(worker->db)); return;
    }
}

enum db_status api_database(struct worker *worker)
{
    int64_t now_us = monotonic_us();
    return worker_database(worker, now_us + worker->service->config.order_timeout_ms * 1000,
                           now_us + product_settings(worker->service->orders.queue, 0).lock_wait_ms * 1000);
}

void api_reply_no_own_settings(struct exchange *x)
{
    reply_problem(
        x, PROBLEM_OVERLOADED, NULL,
        "%d products have settings of their own, and no other can until the service is started again",
        OWN_SETTINGS_MAX);
}

void api_reply_json_text(struct exchange *x, char *json, enum problem missing, const char *what)
{
    if (json)
        http_reply_body(x, 200, "application/json", json, strlen(json));
    else
        reply_problem(x, missing, NULL, "no %s has this id", what);
}
