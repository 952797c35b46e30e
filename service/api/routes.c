/* The table of routes with who may make each call, and the checks that every request has to pass. */
#include "service/api/api.h"

#include "service/api/router.h"
#include "service/http/host_name.h"

#include <string.h>

/* clang-format off */
const struct route routes[] = {
    {"GET",    "/",                 LANE_HTTP,    ACCESS_ANYBODY, page_get},
    {"GET",    "/page/:/:",         LANE_HTTP,    ACCESS_ANYBODY, page_get_file},
    {"GET",    "/live",             LANE_READS,   ACCESS_ANYBODY, live_get},
    {"GET",    "/classroom",        LANE_HTTP,    ACCESS_ANYBODY, classroom_get},
    {"POST",   "/classroom/code",   LANE_HTTP,    ACCESS_TEACHER, classroom_new_code}, /* waits for nothing */
    {"GET",    "/class",            LANE_HTTP,    ACCESS_ANYBODY, class_page},
    {"GET",    "/class/news",       LANE_HTTP,    ACCESS_OWNER,   class_news}, /* all of /class waits for nothing */
    {"GET",    "/class/board",      LANE_HTTP,    ACCESS_TEACHER, class_board},
    {"GET",    "/class/address.svg", LANE_HTTP,   ACCESS_TEACHER, class_address},
    {"POST",   "/class/question",   LANE_HTTP,    ACCESS_TEACHER, class_ask},
    {"DELETE", "/class/question",   LANE_HTTP,    ACCESS_TEACHER, class_clear},
    {"POST",   "/class/question/close", LANE_HTTP, ACCESS_TEACHER, class_close},
    {"POST",   "/class/push",       LANE_HTTP,    ACCESS_TEACHER, class_push},
    {"PUT",    "/class/vote",       LANE_HTTP,    ACCESS_OWNER,   class_vote},
    {"PUT",    "/class/solved",     LANE_HTTP,    ACCESS_OWNER,   class_solved},
    {"POST",   "/sandboxes",        LANE_CHANGES, ACCESS_LEARNER, sandboxes_create},
    {"GET",    "/sandboxes",        LANE_READS,   ACCESS_TEACHER, sandboxes_list},
    {"DELETE", "/sandboxes",        LANE_READS,   ACCESS_TEACHER, sandboxes_delete_address},
    {"PUT",    "/classroom/limit",  LANE_READS,   ACCESS_TEACHER, sandboxes_put_limit},
    {"DELETE", "/sandboxes/:",      LANE_READS,   ACCESS_TEACHER, sandboxes_delete}, /* waits for no change */
    {"POST",   "/orders",           LANE_ORDERS,  ACCESS_BUYER,   orders_create},
    {"POST",   "/echo",             LANE_ORDERS,  ACCESS_BUYER,   orders_echo},
    {"GET",    "/orders",           LANE_READS,   ACCESS_ANYBODY, orders_list},
    {"GET",    "/orders/:",         LANE_READS,   ACCESS_ANYBODY, orders_get},
    {"GET",    "/products",         LANE_READS,   ACCESS_ANYBODY, products_list},
    {"GET",    "/products/:",       LANE_READS,   ACCESS_ANYBODY, products_get},
    {"PUT",    "/products/:",       LANE_CHANGES, ACCESS_TEACHER, products_replace},
    {"POST",   "/products/:/reset", LANE_CHANGES, ACCESS_OWNER,   products_set_stock},
    {"GET",    "/audit",            LANE_READS,   ACCESS_ANYBODY, audit_get},
    {"GET",    "/strategies",       LANE_READS,   ACCESS_ANYBODY, strategies_list},
    {"GET",    "/strategies/:",     LANE_READS,   ACCESS_ANYBODY, strategies_get},
    {"GET",    "/strategy",         LANE_HTTP,    ACCESS_ANYBODY, strategy_get},
    {"PUT",    "/strategy",         LANE_CHANGES, ACCESS_OWNER,   strategy_set},
    {"POST",   "/locks/:/hold",     LANE_HOLDS,   ACCESS_TEACHER, locks_hold},
    {"POST",   "/runs",             LANE_CHANGES, ACCESS_OWNER,   runs_create},
    {"GET",    "/runs/:",           LANE_HTTP,    ACCESS_ANYBODY, runs_get},
    {"DELETE", "/runs/:",           LANE_CHANGES, ACCESS_OWNER,   runs_delete},
    {"GET",    "/runs/:/traces",    LANE_HTTP,    ACCESS_ANYBODY, runs_get_traces},
    {"GET",    "/steps",            LANE_HTTP,    ACCESS_ANYBODY, steps_page},
    {"POST",   "/steps",            LANE_STEPS,   ACCESS_OWNER,   steps_make},
    {"POST",   "/steps/search",     LANE_SEARCHES, ACCESS_OWNER,  steps_search},
    {"GET",    "/lessons/",         LANE_HTTP,    ACCESS_ANYBODY, lessons_page},
    {"GET",    "/lessons/:",        LANE_HTTP,    ACCESS_ANYBODY, lessons_get},
    {"GET",    "/traces",           LANE_READS,   ACCESS_ANYBODY, traces_get},
    {"GET",    "/metrics",          LANE_HTTP,    ACCESS_ANYBODY, metrics_get},
    {"GET",    "/healthz",          LANE_HTTP,    ACCESS_ANYBODY, health_get},
    {"GET",    "/readyz",           LANE_READY,   ACCESS_ANYBODY, ready_get},
    {"GET",    "/openapi.yaml",     LANE_HTTP,    ACCESS_ANYBODY, openapi_get},
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

/* The Host header has a name that the service does not accept. (HTTP/1.0 allows none; service/http/headers.c refuses two.) */
static bool is_foreign_host(const struct exchange *x, const struct service *service)
{
    const char *host = http_header(x, "Host");
    return host && !host_is_allowed(host, service->config.allowed_hosts);
}

static bool is_json(const struct exchange *x)
{
    const char *type = http_header(x, "Content-Type");
    return type && strncasecmp(type, "application/json", 16) == 0 &&
           (type[16] == '\0' || strchr("; \t", type[16]));
}

/* Makes the checks that every request has to pass. True: the request failed one, and it has replied. */
static bool refused(struct exchange *x, struct service *service)
{
    char allow[64];
    if (is_foreign_host(x, service)) { /* before the path: such a page must not learn what there is */
        reply_problem(
            x, PROBLEM_FORBIDDEN_ORIGIN, NULL,
            "the Host header must have a numeric address, localhost, this machine's own name or a name of --allowed-hosts; "
            "call the service by its address, or start it with --allowed-hosts NAME");
        return true;
    }
    switch (route_find(routes, x->method, x->path, &x->route, x->argument, sizeof x->argument, allow,
                       sizeof allow)) {
    case ROUTED: break;
    case NO_SUCH_PATH:
        reply_problem(x, PROBLEM_NOT_FOUND, NULL, "no resource has this path; see /openapi.yaml");
        return true;
    case NO_SUCH_METHOD:
        http_set_header(x, "Allow", "%s", allow);
        reply_problem(x, PROBLEM_METHOD_NOT_ALLOWED, NULL, "this path accepts %s", allow);
        return true;
    }
    bool changes = strcmp(x->route->method, "GET") != 0;
    if (changes && is_foreign_origin(x))
        reply_problem(
            x, PROBLEM_FORBIDDEN_ORIGIN, NULL,
            "the Origin header of this call differs from its Host header; open the page at the address that it calls");
    else if (access_allows(x, service, x->route->access) && changes &&
             strcmp(x->route->method, "DELETE") != 0 && !is_json(x))
        reply_problem(x, PROBLEM_UNSUPPORTED_MEDIA_TYPE, NULL,
                      "send the header Content-Type: application/json");
    return x->status != 0;
}

/* Counts the call as one of its address that waits. *ret_earlier as in http_count_call. False with a reply made: the address has too
 * many. */
static bool count_call(struct exchange *x, enum http_call kind, unsigned *ret_earlier)
{
    static const char *const calls[HTTP_CALL_KINDS] = {
        [HTTP_CALL_ORDER] = "orders", [HTTP_CALL_SEARCH] = "searches", [HTTP_CALL_OTHER] = "calls"};
    if (http_count_call(x, kind, ret_earlier))
        return true;
    reply_problem(x, PROBLEM_OVERLOADED, NULL,
                  "%u %s of your address are already waiting; wait for a reply before you send the next",
                  *ret_earlier, calls[kind]);
    return false;
}

/* An order: its handler puts it into the admission queue. True: it has replied. */
static bool take_order(struct exchange *x)
{
    unsigned earlier;
    if (!count_call(x, HTTP_CALL_ORDER, &earlier))
        return true;
    http_hand_over(x);
    x->route->handle(x, NULL);
    return false;
}

/* A call for the workers of its lane. True: it has replied. */
static bool queue_call(struct exchange *x, struct service *service)
{
    enum lane lane = x->route->lane;
    struct queue *queue = service->queues[lane];
    unsigned earlier = 0, of_learner = 0;
    /* The teacher must be able to look and to act while others flood the service. Without a token everybody is the teacher. */
    bool is_first = access_teaches(x) && service->config.admin_token[0];
    if (!is_first && !count_call(x, lane == LANE_SEARCHES ? HTTP_CALL_SEARCH : HTTP_CALL_OTHER, &earlier))
        return true;
    if (lane_has_steps(lane) && !steps_begin_call(x, &of_learner))
        return true;
    http_hand_over(x);
    if (is_first ? queue_push_first(queue, x)
                 : queue_push_turn(queue, x, earlier > of_learner ? earlier : of_learner))
        return false;
    if (lane_has_steps(lane))
        steps_end_call(x);
    reply_problem(x, PROBLEM_OVERLOADED, NULL, "%zu requests are already waiting; try again in a moment",
                  queue_depth(queue));
    http_finish(x);
    return false;
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
    switch (x->route->lane) {
    case LANE_HTTP: x->route->handle(x, NULL); return true;
    case LANE_ORDERS: return take_order(x);
    default: return queue_call(x, service);
    }
}

void service_refuse(struct exchange *x, int status, const char *detail)
{
    reply_problem(x, status == 413 ? PROBLEM_PAYLOAD_TOO_LARGE : PROBLEM_BAD_REQUEST, NULL, "%s", detail);
}
