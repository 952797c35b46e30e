/* What every request is checked for before anything is done: path, method, origin, token, type of the body. */
#include "base/clock.h"
#include "tests/unit/service/http/fake_exchange.h"

#include "service/api/router.h"
#include "service/http/host_name.h"
#include "service/orders/place_orders.h"

#include <limits.h>
#include <unistd.h>

static struct service service;
static const char ORDER[] = "{\"product_id\": 1, \"quantity\": 1}";

static int start(void **state)
{
    service.config.admin_token = "";
    service.config.allowed_hosts = "";
    service.config.order_timeout_ms =
        0; /* an order has expired when it is queued, so no database is needed */
    service.orders.config = &service.config;
    service.orders.may_order = access_orders;
    service.orders.queue = admission_new(
        &(const struct settings){.strategy = strategy_find("atomic-decrement")},
        &(const struct admission_bounds){.orders = 2});
    assert_non_null(service.orders.queue);
    atomic_store(&service.draining, false);
    for (int lane = LANE_READS; lane < LANE_COUNT; lane++)
        service.queues[lane] = queue_new(2);
    return 0;
}

static int stop(void **state)
{
    for (int lane = 0; lane < LANE_COUNT; lane++)
        queue_free(service.queues[lane]);
    admission_free(service.orders.queue);
    return 0;
}

struct header {
    const char *name, *value;
};

static const struct header *every_call; /* brings this one as well; may be NULL */

/* Dispatches a request with these headers (ended by one without a name); what comes of it is in FAKE. */
static bool dispatch(struct fake_exchange *fake, const char *method, const char *path,
                     const struct header *headers)
{
    *fake = (struct fake_exchange){.service = &service};
    bool is_order = strcmp(path, "/orders") == 0 || strcmp(path, "/echo") == 0;
    fake_request(fake, method, path, is_order ? ORDER : NULL, is_order ? strlen(ORDER) : 0);
    fake->x.received_us = monotonic_us();
    for (; headers && headers->name; headers++)
        fake_header(fake, headers->name, headers->value);
    if (every_call)
        fake_header(fake, every_call->name, every_call->value);
    return service_dispatch(&fake->x);
}

/* It gets through: it is in its lane's queue, suspended, with no reply yet. */
static void assert_admitted(const char *method, const char *path, const struct header *headers,
                            const char *what)
{
    struct fake_exchange fake;
    bool replied = dispatch(&fake, method, path, headers);
    if (replied)
        fail_msg("%s %s with %s: %d %.*s", method, path, what, fake.x.status, (int)fake.x.reply_size,
                 fake.x.reply);
    assert_int_equal(fake.x.status, 0);
    assert_int_equal(fake.connection.suspended, 1);
    assert_int_equal(fake.connection.resumed, 0);
    if (fake.x.route->lane == LANE_ORDERS) {
        struct order_worker worker = {.pipeline = &service.orders};
        struct order_batch batch;
        assert_int_equal(admission_load(service.orders.queue, 0).ready, 1);
        assert_true(admission_next(service.orders.queue, &batch) && batch.expired);
        place_orders(&batch, &worker); /* answers and frees it */
    } else {
        assert_int_equal(queue_depth(service.queues[fake.x.route->lane]), 1);
        assert_ptr_equal(queue_pop(service.queues[fake.x.route->lane]), &fake.x);
    }
    fake_free(&fake);
}

static void assert_stopped(const char *method, const char *path, const struct header *headers, int status,
                           const char *type, const char *what)
{
    struct fake_exchange fake;
    bool replied = dispatch(&fake, method, path, headers);
    if (!replied)
        fail_msg("%s %s with %s is admitted", method, path, what);
    assert_problem(&fake, status, type, what);
    assert_int_equal(fake.connection.suspended, 0);
    for (int lane = LANE_READS; lane < LANE_COUNT; lane++)
        assert_int_equal(queue_depth(service.queues[lane]), 0);
    assert_int_equal(admission_load(service.orders.queue, 0).ready, 0);
    fake_free(&fake);
}

/* clang-format off */
#define JSON  {"Content-Type", "application/json"}
#define LOCAL {"Host", "127.0.0.1:8080"}
#define END   {NULL, NULL}
/* clang-format on */

static const struct {
    const char *method, *path;
    bool control;
} changes[] = {
    {"POST", "/orders", false},          {"POST", "/echo", false},   {"PUT", "/products/1", true},
    {"POST", "/products/1/reset", true}, {"PUT", "/strategy", true},
};

static void test_paths_and_methods(void **state)
{
    assert_stopped("GET", "/nothing", NULL, 404, "not-found", "no such path");
    assert_stopped("DELETE", "/orders", NULL, 405, "method-not-allowed", "no such method");
    struct fake_exchange fake;
    assert_true(dispatch(&fake, "PATCH", "/products/1", NULL));
    assert_int_equal(fake.x.header_count, 1);
    assert_string_equal(fake.x.headers[0].name, "Allow");
    assert_string_equal(fake.x.headers[0].value, "GET, HEAD, PUT");
    fake_free(&fake);
    assert_true(dispatch(&fake, "GET", "/healthz", NULL)); /* replied to at once */
    assert_int_equal(fake.x.status, 200);
    fake_free(&fake);
    assert_admitted("GET", "/orders/1", NULL, "nothing");
}

static void test_content_types(void **state)
{
    /* clang-format off */
    static const char *const good[] = {
        "application/json", "APPLICATION/JSON", "application/json; charset=utf-8",
        "application/json;charset=utf-8", "application/json ", "application/json\t;x"};
    static const char *const bad[] = {
        "", "text/plain", "application/jsonp", "application/json-patch+json", "application/json,",
        "application/x-www-form-urlencoded", "multipart/form-data", " application/json", "json", "application",
        "text/plain; application/json", "application/jso", "application /json"};
    /* clang-format on */
    for (size_t i = 0; i < COUNT(changes); i++) {
        for (size_t j = 0; j < COUNT(good); j++)
            assert_admitted(changes[i].method, changes[i].path,
                            (const struct header[]){LOCAL, {"content-type", good[j]}, END}, good[j]);
        for (size_t j = 0; j < COUNT(bad); j++)
            assert_stopped(changes[i].method, changes[i].path,
                           (const struct header[]){LOCAL, {"Content-Type", bad[j]}, END}, 415,
                           "unsupported-media-type", bad[j]);
        assert_stopped(changes[i].method, changes[i].path, (const struct header[]){LOCAL, END}, 415,
                       "unsupported-media-type", "no type");
    }
}

/* A page of another origin cannot place orders through its visitor's browser. */
static void test_origins(void **state)
{
    static const struct {
        const char *origin, *host;
        bool good;
    } origins[] = {
        {"http://127.0.0.1:8080", "127.0.0.1:8080", true},
        {"http://localhost:8080", "localhost:8080", true},
        {"HTTP://LOCALHOST:8080", "localhost:8080", true},
        {"https://localhost", "localhost", true},
        {"http://[::1]:8080", "[::1]:8080", true},
        {"http://localhost:8081", "localhost:8080", false},
        {"http://localhost", "localhost:8080", false},
        {"http://127.0.0.1:8080", "localhost:8080", false},
        {"http://evil.example", "localhost:8080", false},
        {"http://localhost:8080.evil.example", "localhost:8080", false},
        {"http://evil.example/localhost:8080", "localhost:8080", false},
        {"http://localhost:8080/", "localhost:8080", false},
        {"null", "localhost:8080", false},
        {"", "localhost:8080", false},
        {"localhost:8080", "localhost:8080", false},
        {"://", "localhost:8080", false},
        {"file://", "localhost:8080", false},
        {"http://localhost:8080", NULL, false},
    };
    for (size_t i = 0; i < COUNT(changes); i++)
        for (size_t j = 0; j < COUNT(origins); j++) {
            const struct header headers[] = {
                JSON, {"Origin", origins[j].origin}, {origins[j].host ? "Host" : NULL, origins[j].host}, END};
            if (origins[j].good)
                assert_admitted(changes[i].method, changes[i].path, headers, origins[j].origin);
            else
                assert_stopped(changes[i].method, changes[i].path, headers, 403, "forbidden-origin",
                               origins[j].origin);
        }
}

/* A name that its owner lets resolve to this machine (DNS rebinding) makes a page there of the same origin. So the service
 * answers to addresses, to this machine's names and to those that it was told, with an admin token as without. */
static void assert_hosts(void)
{
    /* clang-format off */
    static const char *const good[] = {
        "localhost", "localhost:8080", "LocalHost:8080", "127.0.0.1", "127.0.0.1:8080", "127.1.2.3:80",
        "127.100.100.100:8080", "[::1]", "[::1]:8080",
        /* A numeric address cannot have been made to resolve to this machine. */
        "192.168.1.2", "10.0.0.7:8080", "[fd00::1]:8080",
        /* The names that the service was told. */
        "shop.example", "SHOP.example:8080", "service-1:8080"};
    static const char *const bad[] = {
        "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "127.0.0.1.evil.example:8080",
        "127.evil.example", "127.100.100.100.evil.example:8080", "127.000.000.001.evil.example",
        "localhost.evil.example", "localhostevil.example", "[::1].evil.example", "[::1]evil",
        "evil.example.127.0.0.1", "", ":8080", "127.0.0.1@evil.example", "localhost:8080x",
        "localhost:8080:8080", "shop.example.evil.example", "hop.example", "shop.exampl", "shop",
        "shop.example,service-1", ",", "[127.0.0.1]", "[shop.example]", "[::1", "127.0.0.1 evil.example", "127",
        "2130706433",
        "127.0.0.1.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.evil.example"};
    /* clang-format on */
    for (size_t i = 0; i < COUNT(changes); i++) {
        for (size_t j = 0; j < COUNT(good); j++)
            assert_admitted(changes[i].method, changes[i].path,
                            (const struct header[]){JSON, {"Host", good[j]}, END}, good[j]);
        for (size_t j = 0; j < COUNT(bad); j++) {
            char origin[200];
            snprintf(origin, sizeof origin, "http://%s", bad[j]);
            assert_stopped(changes[i].method, changes[i].path,
                           (const struct header[]){JSON, {"Host", bad[j]}, {"Origin", origin}, END}, 403,
                           "forbidden-origin", bad[j]);
        }
    }
    /* Such a page reads no orders of other people, nor learns which paths there are. */
    for (size_t j = 0; j < COUNT(bad); j++) {
        const struct header headers[] = {{"Host", bad[j]}, END};
        assert_stopped("GET", "/orders", headers, 403, "forbidden-origin", bad[j]);
        assert_stopped("GET", "/nothing", headers, 403, "forbidden-origin", bad[j]);
    }
    for (size_t j = 0; j < COUNT(good); j++)
        assert_admitted("GET", "/orders", (const struct header[]){{"Host", good[j]}, END}, good[j]);
    assert_admitted("POST", "/orders", (const struct header[]){JSON, END}, "no host (HTTP/1.0)");
}

static void test_hosts(void **state)
{
    char own[HOST_NAME_MAX + 1] = "";
    service.config.allowed_hosts = "shop.example,service-1";
    assert_hosts();
    assert_int_equal(gethostname(own, sizeof own - 1), 0);
    assert_admitted("GET", "/orders", (const struct header[]){{"Host", own}, END}, own);
}

static void test_hosts_with_a_token(void **state)
{
    static const struct header token = {"Authorization", "Bearer a secret"};
    service.config.admin_token = "a secret";
    every_call = &token;
    test_hosts(state);
    every_call = NULL;
}

static void test_lists_of_hosts(void **state)
{
    static const char *const good[] = {"a", "shop.example", "a,b", "service-1,service-2,10.0.0.1"};
    static const char *const bad[] = {"",     ",",        "a,",     ",a", "a,,b", "a b",
                                      "a, b", "http://a", "a:8080", "a/", "*"};
    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(host_names_are_valid(good[i]));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(host_names_are_valid(bad[i]));
}

static void test_loopback_hosts(void **state)
{
    static const char *const loopback[] = {"localhost",       "LOCALHOST:8080", "shop.localhost",
                                           "127.0.0.1",       "127.1.2.3:80",   "[::1]:80",
                                           "0.0.0.0:8080",    "[::]",           "[::ffff:127.0.0.1]:80",
                                           "[::ffff:0.0.0.0]"};
    static const char *const others[] = {"192.0.2.7:8080",
                                         "notlocalhost",
                                         "localhost.example",
                                         "[2001:db8::1]",
                                         "[::ffff:192.0.2.7]",
                                         "128.0.0.1",
                                         "shop",
                                         "localhost:80x",
                                         "[::1",
                                         "",
                                         "::1",
                                         "[localhost]"};
    for (size_t i = 0; i < COUNT(loopback); i++)
        if (!host_is_loopback(loopback[i]))
            fail_msg("%s is loopback", loopback[i]);
    for (size_t i = 0; i < COUNT(others); i++)
        if (host_is_loopback(others[i]))
            fail_msg("%s is not loopback", others[i]);
}

static void test_tokens(void **state)
{
    service.config.admin_token = "a secret";
    /* clang-format off */
    static const char *const bad[] = {
        "", "Bearer", "Bearer ", "Bearer a", "Bearer a secre", "Bearer a secret ", "Bearer  a secret",
        "Bearer a secrets", "Bearer A secret", "a secret", "Basic a secret", "Bearera secret",
        "Bearer a secreta secret", "Bearer \xff"};
    /* clang-format on */
    for (size_t i = 0; i < COUNT(changes); i++) {
        if (!changes[i].control) {
            assert_admitted(changes[i].method, changes[i].path, (const struct header[]){LOCAL, JSON, END},
                            "no token");
            continue;
        }
        assert_stopped(changes[i].method, changes[i].path, (const struct header[]){LOCAL, JSON, END}, 401,
                       "unauthorized", "no token");
        for (size_t j = 0; j < COUNT(bad); j++)
            assert_stopped(changes[i].method, changes[i].path,
                           (const struct header[]){LOCAL, JSON, {"Authorization", bad[j]}, END}, 401,
                           "unauthorized", bad[j]);
        assert_admitted(changes[i].method, changes[i].path,
                        (const struct header[]){LOCAL, JSON, {"Authorization", "Bearer a secret"}, END},
                        "the token");
        assert_admitted(changes[i].method, changes[i].path,
                        (const struct header[]){LOCAL, JSON, {"authorization", "bearer a secret"}, END},
                        "the token");
    }
    struct fake_exchange fake;
    assert_true(dispatch(&fake, "PUT", "/strategy", (const struct header[]){LOCAL, JSON, END}));
    assert_string_equal(fake.x.headers[0].name, "WWW-Authenticate");
    assert_int_equal(strncmp(fake.x.headers[0].value, "Bearer", 6), 0);
    fake_free(&fake);
    assert_admitted("GET", "/orders", NULL, "no token"); /* the books are open */
}

static void test_a_full_queue(void **state)
{
    struct fake_exchange fakes[3];
    const struct header headers[] = {LOCAL, JSON, END};
    for (int i = 0; i < 2; i++)
        assert_false(dispatch(&fakes[i], "POST", "/orders", headers));
    assert_false(dispatch(&fakes[2], "POST", "/orders", headers)); /* handed over, and back at once */
    assert_problem(&fakes[2], 503, "overloaded", "a full queue");
    assert_int_equal(fakes[2].connection.suspended, 1);
    assert_int_equal(fakes[2].connection.resumed, 1);
    assert_string_equal(fakes[2].x.headers[0].name, "Retry-After");
    struct order_worker worker = {.pipeline = &service.orders};
    struct order_batch batch;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fakes[i].connection.resumed, 0);
        assert_true(admission_next(service.orders.queue, &batch));
        place_orders(&batch, &worker);
        assert_int_equal(fakes[i].connection.resumed, 1);
    }
    for (int i = 0; i < 3; i++)
        fake_free(&fakes[i]);
    assert_admitted("GET", "/orders", NULL, "a separate lane");
}

static void test_draining(void **state)
{
    atomic_store(&service.draining, true);
    struct fake_exchange fake;
    assert_true(dispatch(&fake, "POST", "/orders", (const struct header[]){LOCAL, JSON, END}));
    assert_problem(&fake, 503, "overloaded", "draining");
    assert_true(fake.x.close);
    fake_free(&fake);
}

static void test_refusals_of_http(void **state)
{
    struct fake_exchange fake = {.service = &service};
    fake_request(&fake, "POST", "/orders", NULL, 0);
    service_refuse(&fake.x, 413, "too much");
    assert_problem(&fake, 413, "payload-too-large", "413");
    fake_free(&fake);
    fake_request(&fake, "POST", "/orders", NULL, 0);
    service_refuse(&fake.x, 400, "two lengths");
    assert_problem(&fake, 400, "bad-request", "400");
    fake_free(&fake);
}

#define ACCESS_TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ACCESS_TEST(test_paths_and_methods),
        ACCESS_TEST(test_content_types),
        ACCESS_TEST(test_origins),
        ACCESS_TEST(test_hosts),
        ACCESS_TEST(test_hosts_with_a_token),
        ACCESS_TEST(test_lists_of_hosts),
        ACCESS_TEST(test_loopback_hosts),
        ACCESS_TEST(test_tokens),
        ACCESS_TEST(test_a_full_queue),
        ACCESS_TEST(test_draining),
        ACCESS_TEST(test_refusals_of_http),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
