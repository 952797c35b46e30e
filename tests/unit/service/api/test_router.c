/* From method and path to handler: every route of the API, and all the ways to miss one. */
#include "tests/unit/unit.h"

#include "service/api/api.h"
#include "service/api/router.h"

#include <stdio.h>

static const struct {
    const char *method, *path, *argument;
    handler_fn *handle;
    enum access access;
} promised[] = {
    {"GET", "/", NULL, page_get, ACCESS_ANYBODY},
    {"GET", "/page/shared/dom.js", "shared/dom.js", page_get_file, ACCESS_ANYBODY},
    {"GET", "/live", NULL, live_get, ACCESS_ANYBODY},
    {"GET", "/classroom", NULL, classroom_get, ACCESS_ANYBODY},
    {"POST", "/classroom/code", NULL, classroom_new_code, ACCESS_TEACHER},
    {"GET", "/class", NULL, class_page, ACCESS_ANYBODY},
    {"GET", "/class/news", NULL, class_news, ACCESS_OWNER},
    {"GET", "/class/board", NULL, class_board, ACCESS_TEACHER},
    {"GET", "/class/address.svg", NULL, class_address, ACCESS_TEACHER},
    {"POST", "/class/question", NULL, class_ask, ACCESS_TEACHER},
    {"DELETE", "/class/question", NULL, class_clear, ACCESS_TEACHER},
    {"POST", "/class/question/close", NULL, class_close, ACCESS_TEACHER},
    {"POST", "/class/push", NULL, class_push, ACCESS_TEACHER},
    {"PUT", "/class/vote", NULL, class_vote, ACCESS_OWNER},
    {"PUT", "/class/solved", NULL, class_solved, ACCESS_OWNER},
    {"POST", "/sandboxes", NULL, sandboxes_create, ACCESS_LEARNER},
    {"POST", "/orders", NULL, orders_create, ACCESS_BUYER},
    {"POST", "/echo", NULL, orders_echo, ACCESS_BUYER},
    {"GET", "/orders", NULL, orders_list, ACCESS_ANYBODY},
    {"GET", "/orders/17", "17", orders_get, ACCESS_ANYBODY},
    {"GET", "/products", NULL, products_list, ACCESS_ANYBODY},
    {"GET", "/products/1", "1", products_get, ACCESS_ANYBODY},
    {"PUT", "/products/1", "1", products_replace, ACCESS_TEACHER},
    {"POST", "/products/1/reset", "1", products_set_stock, ACCESS_OWNER},
    {"POST", "/locks/door/hold", "door", locks_hold, ACCESS_TEACHER},
    {"GET", "/audit", NULL, audit_get, ACCESS_ANYBODY},
    {"GET", "/strategies", NULL, strategies_list, ACCESS_ANYBODY},
    {"GET", "/strategies/read-write", "read-write", strategies_get, ACCESS_ANYBODY},
    {"GET", "/strategy", NULL, strategy_get, ACCESS_ANYBODY},
    {"PUT", "/strategy", NULL, strategy_set, ACCESS_OWNER},
    {"GET", "/sandboxes", NULL, sandboxes_list, ACCESS_TEACHER},
    {"DELETE", "/sandboxes", NULL, sandboxes_delete_address, ACCESS_TEACHER},
    {"PUT", "/classroom/limit", NULL, sandboxes_put_limit, ACCESS_TEACHER},
    {"DELETE", "/sandboxes/300", "300", sandboxes_delete, ACCESS_TEACHER},
    {"POST", "/runs", NULL, runs_create, ACCESS_OWNER},
    {"GET", "/steps", NULL, steps_page, ACCESS_ANYBODY},
    {"POST", "/steps", NULL, steps_make, ACCESS_OWNER},
    {"POST", "/steps/search", NULL, steps_search, ACCESS_OWNER},
    {"GET", "/lessons/", NULL, lessons_page, ACCESS_ANYBODY},
    {"GET", "/lessons/13-etcd", "13-etcd", lessons_get, ACCESS_ANYBODY},
    {"GET", "/runs/3", "3", runs_get, ACCESS_ANYBODY},
    {"DELETE", "/runs/3", "3", runs_delete, ACCESS_OWNER},
    {"GET", "/runs/3/traces", "3", runs_get_traces, ACCESS_ANYBODY},
    {"GET", "/traces", NULL, traces_get, ACCESS_ANYBODY},
    {"GET", "/metrics", NULL, metrics_get, ACCESS_ANYBODY},
    {"GET", "/healthz", NULL, health_get, ACCESS_ANYBODY},
    {"GET", "/readyz", NULL, ready_get, ACCESS_ANYBODY},
    {"GET", "/openapi.yaml", NULL, openapi_get, ACCESS_ANYBODY},
};

struct found {
    enum routing routing;
    const struct route *route;
    char argument[HTTP_ARGUMENT_MAX], allow[64];
};

static struct found find(const char *method, const char *path)
{
    struct found found = {.argument = "untouched"};
    found.routing = route_find(routes, method, path, &found.route, found.argument, sizeof found.argument,
                               found.allow, sizeof found.allow);
    return found;
}

static void test_every_route(void **state)
{
    for (size_t i = 0; i < COUNT(promised); i++) {
        struct found found = find(promised[i].method, promised[i].path);
        if (found.routing != ROUTED || found.route->handle != promised[i].handle)
            fail_msg("%s %s does not lead to its handler", promised[i].method, promised[i].path);
        assert_true(found.route->access == promised[i].access);
        if (promised[i].argument)
            assert_string_equal(found.argument, promised[i].argument);
    }
}

/* A route that is added to the table has to be added here, too. */
static void test_no_route_is_forgotten(void **state)
{
    for (const struct route *route = routes; route->method; route++) {
        size_t i = 0;
        while (i < COUNT(promised) &&
               (promised[i].handle != route->handle || strcmp(promised[i].method, route->method)))
            i++;
        if (i == COUNT(promised))
            fail_msg("%s %s is not tested", route->method, route->path);
        assert_int_equal(route->path[0], '/');
        /* Nothing that changes the shop or waits for orders may hold up the HTTP thread, nor the orders. */
        bool control = route->access != ACCESS_ANYBODY && route->access != ACCESS_BUYER &&
                       route->handle != classroom_new_code &&   /* changes no more than a text in memory */
                       strncmp(route->path, "/class/", 7) != 0; /* the class board is in memory, too */
        assert_true(!control || (route->lane != LANE_HTTP && route->lane != LANE_ORDERS));
        for (const struct route *other = routes; other < route; other++)
            assert_true(strcmp(other->path, route->path) != 0 || strcmp(other->method, route->method) != 0);
    }
    assert_int_equal(find("POST", "/orders").route->lane, LANE_ORDERS);
    assert_int_equal(find("GET", "/healthz").route->lane, LANE_HTTP);
}

static void test_head_is_taken_where_get_is(void **state)
{
    for (size_t i = 0; i < COUNT(promised); i++) {
        if (strcmp(promised[i].method, "GET") != 0)
            continue;
        struct found found = find("HEAD", promised[i].path);
        assert_int_equal(found.routing, ROUTED);
        assert_ptr_equal(found.route->handle, promised[i].handle);
    }
    assert_int_equal(find("HEAD", "/echo").routing, NO_SUCH_METHOD);
    assert_int_equal(find("HEAD", "/products/1/reset").routing, NO_SUCH_METHOD);
}

static void test_allow_lists(void **state)
{
    static const struct {
        const char *path, *allow;
    } lists[] = {
        {"/orders", "POST, GET, HEAD"},    {"/echo", "POST"},
        {"/orders/1", "GET, HEAD"},        {"/products", "GET, HEAD"},
        {"/products/1", "GET, HEAD, PUT"}, {"/products/1/reset", "POST"},
        {"/strategy", "GET, HEAD, PUT"},   {"/strategies/mutex", "GET, HEAD"},
        {"/healthz", "GET, HEAD"},
    };
    static const char *const methods[] = {"DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT",
                                          "get",    "Post",  "",        "GETX",  "GE"};
    for (size_t i = 0; i < COUNT(lists); i++)
        for (size_t j = 0; j < COUNT(methods); j++) {
            struct found found = find(methods[j], lists[i].path);
            assert_int_equal(found.routing, NO_SUCH_METHOD);
            assert_string_equal(found.allow, lists[i].allow);
        }
}

static void test_paths_that_are_not_there(void **state)
{
    static const char *const paths[] = {
        "",
        "//",
        "*",
        "orders",
        "/order",
        "/orderss",
        "/Orders",
        "/ORDERS",
        "/orders.json",
        /* trailing slashes and empty segments are other paths */
        "/orders/",
        "//orders",
        "/orders//",
        "/orders//1",
        "/orders/1/",
        "/products/",
        "/products//reset",
        "/products/1/",
        "/products/1/reset/",
        "/products/1//reset",
        "/products/1/rese",
        "/products/1/resett",
        "/products/1/2/reset",
        "/strategies/",
        "/strategies/a/b",
        "/strategy/",
        "/strategy/mutex",
        "/healthz/x",
        /* nothing is decoded or resolved */
        "/orders%2f1",
        "/%6frders",
        "/orders/../orders",
        "/./orders",
        "/orders/1/../2",
        "/openapi",
        "/openapi.yaml/",
        "/orders;a=b",
        "/orders\\1",
        " /orders",
        "/orders ",
        "/products/:/reset/x",
        "/:",
    };
    for (size_t i = 0; i < COUNT(paths); i++) {
        static const char *const methods[] = {"GET", "POST", "PUT", "HEAD", "DELETE"};
        for (size_t j = 0; j < COUNT(methods); j++)
            if (find(methods[j], paths[i]).routing != NO_SUCH_PATH)
                fail_msg("%s '%s' is found", methods[j], paths[i]);
    }
}

/* The variable segment is handed on as it was sent; what it means is the handler's business. */
static void test_arguments(void **state)
{
    static const char *const arguments[] = {"1",   "0",        "-1",   "abc",   ":",
                                            "%00", "%2F",      "..",   ".",     "a:b",
                                            "1 ",  "\xc3\xb6", "\xff", "reset", "99999999999999999999"};
    for (size_t i = 0; i < COUNT(arguments); i++) {
        char path[128];
        snprintf(path, sizeof path, "/orders/%s", arguments[i]);
        struct found found = find("GET", path);
        assert_int_equal(found.routing, ROUTED);
        assert_string_equal(found.argument, arguments[i]);
        snprintf(path, sizeof path, "/products/%s/reset", arguments[i]);
        found = find("POST", path);
        assert_int_equal(found.routing, ROUTED);
        assert_string_equal(found.argument, arguments[i]);
    }
}

static void test_bounds_of_arguments(void **state)
{
    for (size_t length = 1; length <= 2 * HTTP_ARGUMENT_MAX; length++) {
        char path[3 * HTTP_ARGUMENT_MAX] = "/orders/";
        memset(path + strlen(path), 'x', length);
        struct found found = find("GET", path);
        assert_int_equal(found.routing, length < HTTP_ARGUMENT_MAX ? ROUTED : NO_SUCH_PATH);
        if (found.routing == ROUTED)
            assert_int_equal(strlen(found.argument), length);
    }
    char argument[4], allow[64];
    const struct route *route;
    assert_int_equal(
        route_find(routes, "GET", "/orders/123", &route, argument, sizeof argument, allow, sizeof allow),
        ROUTED);
    assert_string_equal(argument, "123");
    assert_int_equal(
        route_find(routes, "GET", "/orders/1234", &route, argument, sizeof argument, allow, sizeof allow),
        NO_SUCH_PATH);
}

/* A table of the test's own: the first route that fits is taken, and an empty table has none. */
static void test_other_tables(void **state)
{
    static const struct route none[] = {{0}};
    static const struct route table[] = {
        {"GET", "/a/:", LANE_HTTP, false, health_get},
        {"GET", "/a/b", LANE_HTTP, false, ready_get},
        {"DELETE", "/a/:", LANE_HTTP, false, ready_get},
        {"GET", "/a/:/c/d", LANE_HTTP, false, metrics_get},
        {0},
    };
    const struct route *route = NULL;
    char argument[8], allow[32];
    assert_int_equal(route_find(none, "GET", "/", &route, argument, sizeof argument, allow, sizeof allow),
                     NO_SUCH_PATH);
    assert_int_equal(route_find(table, "GET", "/a/b", &route, argument, sizeof argument, allow, sizeof allow),
                     ROUTED);
    assert_ptr_equal(route, &table[0]);
    assert_string_equal(argument, "b");
    assert_int_equal(
        route_find(table, "GET", "/a/x/c/d", &route, argument, sizeof argument, allow, sizeof allow), ROUTED);
    assert_ptr_equal(route, &table[3]);
    assert_string_equal(argument, "x");
    assert_int_equal(route_find(table, "PUT", "/a/x", &route, argument, sizeof argument, allow, sizeof allow),
                     NO_SUCH_METHOD);
    assert_string_equal(allow, "GET, HEAD, DELETE");
    assert_int_equal(
        route_find(table, "GET", "/a/x/c", &route, argument, sizeof argument, allow, sizeof allow),
        NO_SUCH_PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_route),
        cmocka_unit_test(test_no_route_is_forgotten),
        cmocka_unit_test(test_head_is_taken_where_get_is),
        cmocka_unit_test(test_allow_lists),
        cmocka_unit_test(test_paths_that_are_not_there),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_bounds_of_arguments),
        cmocka_unit_test(test_other_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
