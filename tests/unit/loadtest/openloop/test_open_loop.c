/* The open loop against a server that the test plays itself: what it counts as what, and from when it measures. */
#include "tests/unit/unit.h"

#include "loadtest/openloop/open_loop.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the server ---------------------------------------------------------------------------------------- */

enum { CLIENTS_MAX = 64 };

#define SOLD_OUT_BODY "{\"type\":\"/problems/sold-out\",\"status\":409}"

/* How an order is met; a look at the server's health is always answered. */
enum manner { ANSWERS, NEVER_ANSWERS, HANGS_UP, REFUSES_AS_SOLD_OUT, ACCEPTS, TALKS_NONSENSE };

static struct {
    int listener, port;
    pthread_t thread;
    atomic_bool ends;
    atomic_int manner;   /* enum manner */
    atomic_int delay_ms; /* of every answer, one after the other */
    atomic_int orders;   /* that have come */
} server;

static void reply(int client, const char *status, const char *body)
{
    char text[512];
    int length = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status,
                          strlen(body), body);
    (void)!write(client, text, (size_t)length); /* the client may have gone */
}

/* False: the connection is to be closed. Requests come in one piece, being so short. */
static bool serve(int client)
{
    char text[2048];
    ssize_t length = read(client, text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = 0;
    if (strncmp(text, "GET ", 4) == 0) {
        reply(client, "200 OK", "{}");
        return true;
    }
    atomic_fetch_add(&server.orders, 1);
    sleep_us(server.delay_ms * INT64_C(1000));
    switch ((enum manner)server.manner) {
    case ANSWERS: reply(client, "201 Created", "{}"); break;
    case ACCEPTS: reply(client, "202 Accepted", "{}"); break;
    case REFUSES_AS_SOLD_OUT: reply(client, "409 Conflict", SOLD_OUT_BODY); break;
    case TALKS_NONSENSE: reply(client, "418 I'm a teapot", "short and stout"); break;
    case NEVER_ANSWERS: break;
    case HANGS_UP: return false;
    }
    return true;
}

static void *run_server(void *unused)
{
    (void)unused;
    struct pollfd fds[CLIENTS_MAX + 1] = {{.fd = server.listener, .events = POLLIN}};
    nfds_t count = 1;
    while (!server.ends) {
        if (poll(fds, count, 10) <= 0)
            continue;
        for (nfds_t i = count; i-- > 1;)
            if (fds[i].revents && !serve(fds[i].fd)) {
                close(fds[i].fd);
                fds[i] = fds[--count];
            }
        int client = fds[0].revents && count <= CLIENTS_MAX ? accept(server.listener, NULL, NULL) : -1;
        if (client >= 0)
            fds[count++] = (struct pollfd){.fd = client, .events = POLLIN};
    }
    while (count-- > 1)
        close(fds[count].fd);
    return NULL;
}

static int start_server(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    signal(SIGPIPE, SIG_IGN);
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server.listener, (struct sockaddr *)&address, length) != 0 || listen(server.listener, 64) != 0 ||
        getsockname(server.listener, (struct sockaddr *)&address, &length) != 0)
        return -1;
    server.port = ntohs(address.sin_port);
    return pthread_create(&server.thread, NULL, run_server, NULL);
}

static int stop_server(void **state)
{
    server.ends = true;
    return pthread_join(server.thread, NULL) || close(server.listener);
}

/* ---- a load -------------------------------------------------------------------------------------------- */

static struct open_result result;
static struct open_counts totals;
static int64_t gap_us = 1000; /* between two arrivals */

/* Runs COUNT arrivals, as many of each of two products, against such a server. */
static void run(enum manner manner, int delay_ms, size_t count, int64_t connections, int64_t backlog,
                int64_t timeout_ms)
{
    char url[64];
    struct arrival arrivals[256];
    assert_true(count <= COUNT(arrivals));
    for (size_t i = 0; i < count; i++)
        arrivals[i] = (struct arrival){
            .at_us = (int64_t)i * gap_us, .product = i % 2, .phase = i < count / 2 ? 0 : 1};
    struct schedule schedule = {.count = count, .arrivals = arrivals};
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    struct testbed testbed = {.count = 1, .given = 1, .clients = {service_client_open(url, NULL)}};
    struct open_load load = {.testbed = &testbed,
                             .schedule = &schedule,
                             .first_product = 7,
                             .products = 2,
                             .quantity = 1,
                             .connections = connections,
                             .backlog = backlog,
                             .timeout_ms = timeout_ms};
    server.manner = manner;
    server.delay_ms = delay_ms;
    server.orders = 0;
    assert_true(open_load_run(&load, &result));
    totals = open_totals(&result);
    service_client_close(testbed.clients[0]);

    assert_int_equal(totals.scheduled, count);
    assert_int_equal(totals.scheduled, open_answered(&totals) + totals.unanswered + totals.dropped +
                                           totals.timed_out_waiting + totals.timed_out_sent);
    assert_int_equal(result.phases[0].scheduled + result.phases[1].scheduled, count);
}

static const struct hdr *latency(enum answer answer)
{
    static struct hdr merged;
    memset(&merged, 0, sizeof merged);
    for (size_t phase = 0; phase < PHASES_MAX; phase++)
        hdr_merge(&merged, open_latency(&result, phase, answer));
    return &merged;
}

static void test_every_answer_is_counted_by_its_kind(void **state)
{
    static const struct {
        enum manner manner;
        enum answer answer;
        int64_t created;
    } ROWS[] = {
        {ANSWERS, ANSWER_CREATED, 20},
        {ACCEPTS, ANSWER_ACCEPTED, 20},
        {REFUSES_AS_SOLD_OUT, ANSWER_SOLD_OUT, 0},
        {TALKS_NONSENSE, ANSWER_OTHER, 0},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        run(ROWS[i].manner, 0, 40, 8, 100, 60000);
        assert_int_equal(totals.answers[ROWS[i].answer], 40);
        assert_int_equal(latency(ROWS[i].answer)->count, 40);
        assert_int_equal(server.orders, 40);
        for (size_t product = 0; product < 2; product++) {
            assert_int_equal(result.sales[product].created, ROWS[i].created);
            assert_int_equal(result.sales[product].unclear, 0);
        }
        open_result_free(&result);
    }
}

/* A server that takes 10 ms for each order, one after the other, and a buyer each millisecond: the last of a hundred has
 * come after 99 ms, and cannot have an answer before 1,000. A closed loop would say 10 ms. */
static void test_latency_counts_from_when_the_buyer_came(void **state)
{
    run(ANSWERS, 10, 100, 1, 1000, 60000);
    assert_int_equal(totals.answers[ANSWER_CREATED], 100);
    const struct hdr *created = latency(ANSWER_CREATED);
    assert_true(created->max_us >= 900000);
    assert_true(hdr_percentile(created, 0.5) >= 440000); /* the 50th: 500 − 49 ms, but for a bucket */
    assert_true(created->min_us >= 10000);
    assert_in_range(result.behind, 80, 99); /* about ten had been served when the last one came */
    assert_true(result.most_waiting >= result.behind);
    assert_true(result.series.slot_us * OPEN_SLOTS_MAX > 900000); /* the slots last until the last answer */
    int64_t answered = 0;
    for (size_t i = 0; i < OPEN_SLOTS_MAX; i++)
        answered += result.series.answered[i];
    assert_int_equal(answered, 100);
    open_result_free(&result);
}

static void test_who_finds_no_place_is_dropped(void **state)
{
    run(ANSWERS, 100, 20, 1, 3,
        60000); /* all come within the first order's 100 ms: one is served, three wait */
    assert_true(totals.dropped >= 10);
    assert_int_equal(totals.answers[ANSWER_CREATED], 20 - totals.dropped);
    assert_int_equal(server.orders, 20 - totals.dropped);
    open_result_free(&result);
}

static void test_who_waits_too_long_gives_up(void **state)
{
    gap_us = 0; /* so that their time is over at once, and none of those who wait is sent after all */
    run(NEVER_ANSWERS, 0, 10, 4, 100, 300);
    gap_us = 1000;
    assert_int_equal(open_answered(&totals), 0);
    assert_int_equal(totals.timed_out_sent, 4);
    assert_int_equal(totals.timed_out_waiting, 6);
    assert_int_equal(result.sales[0].unclear + result.sales[1].unclear, 4);
    assert_true(result.elapsed_s >= 0.3);
    open_result_free(&result);
}

static void test_a_broken_connection_leaves_an_order_unclear(void **state)
{
    run(HANGS_UP, 0, 10, 2, 100, 60000);
    assert_int_equal(totals.unanswered, 10);
    assert_int_equal(server.orders, 10); /* none is sent a second time */
    assert_int_equal(result.sales[0].unclear, 5);
    assert_int_equal(result.sales[0].created, 0);
    open_result_free(&result);
}

static void test_answers_by_their_text(void **state)
{
    static const struct {
        long status;
        const char *body;
        enum answer answer;
    } ROWS[] = {
        {201, "", ANSWER_CREATED},
        {202, "{}", ANSWER_ACCEPTED},
        {409, "{\"type\": \"/problems/conflict\"}", ANSWER_CONFLICT},
        {503, "{\"type\":\"/problems/lock-busy\"}", ANSWER_LOCK_BUSY},
        {503, "{\"type\":\"/problems/lock-lost\"}", ANSWER_LOCK_LOST},
        {503, "{\"type\":\"/problems/overloaded\"}", ANSWER_OVERLOADED},
        {503, "{\"type\":\"/problems/backend-unavailable\"}", ANSWER_UNAVAILABLE},
        {504, "{\"type\":\"/problems/outcome-unknown\"}", ANSWER_UNKNOWN},
        {409, "{\"type\":\"/problems/sold-outside\"}", ANSWER_OTHER},
        {409, "{\"type\":\"/problems/sold-out", ANSWER_OTHER}, /* cut off */
        {404, "{\"type\":\"/problems/no-such-product\"}", ANSWER_OTHER},
        {502, "<html>", ANSWER_OTHER},
        {200, "", ANSWER_OTHER},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++)
        if (answer_of(ROWS[i].status, ROWS[i].body, strlen(ROWS[i].body)) != ROWS[i].answer)
            fail_msg("%ld %s was taken for %s", ROWS[i].status, ROWS[i].body,
                     answer_name(answer_of(ROWS[i].status, ROWS[i].body, strlen(ROWS[i].body))));
}

int main(void)
{
    alarm(STUCK_S);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_answer_is_counted_by_its_kind),
        cmocka_unit_test(test_latency_counts_from_when_the_buyer_came),
        cmocka_unit_test(test_who_finds_no_place_is_dropped),
        cmocka_unit_test(test_who_waits_too_long_gives_up),
        cmocka_unit_test(test_a_broken_connection_leaves_an_order_unclear),
        cmocka_unit_test(test_answers_by_their_text),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
