/* Clients that are too slow are cut, each request by its own time. The connections are real ones over loopback, and their
 * phases what the HTTP thread would tell. */
#include "tests/unit/unit.h"

#include "base/clock.h"

#include "service/http/timeouts.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LIMIT_US = 3200 * 1000, FIRST_BYTE_US = 1600 * 1000 };

struct line {
    int client, server;
    struct http_timeouts *timeouts;
    struct http_connection *connection;
};

/* FIRST_BYTE_MS: as of http_timeouts_start. */
static void begin_with(struct line *line, int64_t first_byte_ms)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    line->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(line->client, (struct sockaddr *)&address, size), 0);
    line->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(line->server >= 0);
    close(listener);
    line->timeouts = http_timeouts_start(LIMIT_US / 1000, first_byte_ms);
    assert_non_null(line->timeouts);
    line->connection = http_timeouts_add(line->timeouts, line->server);
    assert_non_null(line->connection);
}

static void begin(struct line *line)
{
    begin_with(line, PATIENCE_US / 1000);
}

static void end(struct line *line)
{
    http_timeouts_remove(line->timeouts, line->connection);
    http_timeouts_stop(line->timeouts);
    close(line->client);
    close(line->server);
}

static void say(const struct line *line)
{
    assert_int_equal(send(line->client, "x", 1, MSG_NOSIGNAL), 1);
}

static void answer(const struct line *line)
{
    http_timeouts_phase(line->connection, HTTP_SERVING);
    http_timeouts_phase(line->connection, HTTP_REPLYING);
    http_timeouts_phase(line->connection, HTTP_IDLE);
}

/* Waits until the client is cut; how long that is after BEGUN. */
static int64_t cut_after_us(const struct line *line, int64_t begun_us)
{
    struct pollfd client = {.fd = line->client, .events = POLLIN};
    char byte;
    assert_int_equal(poll(&client, 1, PATIENCE_US / 1000), 1);
    int64_t after_us = monotonic_us() - begun_us;
    assert_int_equal(recv(line->client, &byte, 1, 0), 0);
    return after_us;
}

static bool is_open(const struct line *line)
{
    struct pollfd client = {.fd = line->client, .events = POLLIN};
    return poll(&client, 1, 0) == 0;
}

static void a_slow_request_is_cut(void **state)
{
    struct line line;
    begin(&line);
    int64_t begun_us = monotonic_us();
    say(&line);
    http_timeouts_phase(line.connection, HTTP_RECEIVING);
    assert_true(cut_after_us(&line, begun_us) > LIMIT_US);
    end(&line);
}

/* The timeouts were not checked between the two. */
static void the_next_request_has_all_its_time(void **state)
{
    struct line line;
    begin(&line);
    say(&line);
    http_timeouts_phase(line.connection, HTTP_RECEIVING);
    sleep_us(LIMIT_US / 2);
    say(&line);
    int64_t begun_us = monotonic_us();
    answer(&line);
    http_timeouts_phase(line.connection, HTTP_RECEIVING);
    int64_t after_us = cut_after_us(&line, begun_us);
    if (after_us < LIMIT_US)
        fail_msg("cut after %lld ms", (long long)(after_us / 1000));
    end(&line);
}

static void bytes_after_an_answer_begin_a_request(void **state)
{
    struct line line;
    begin(&line);
    say(&line);
    http_timeouts_phase(line.connection, HTTP_RECEIVING);
    answer(&line);
    sleep_us(LIMIT_US / 4);
    int64_t begun_us = monotonic_us();
    say(&line);
    int64_t after_us = cut_after_us(&line, begun_us);
    assert_true(after_us > LIMIT_US - LIMIT_US / 8);
    end(&line);
}

/* A client that sends a request and closes its side, as netcat does, while our thread has not come to read it. */
static void what_was_sent_before_the_end_is_read(void **state)
{
    struct line line;
    begin(&line);
    say(&line);
    assert_int_equal(shutdown(line.client, SHUT_WR), 0);
    sleep_us(LIMIT_US / 2);
    assert_true(is_open(&line));
    char byte;
    assert_int_equal(recv(line.server, &byte, 1, 0), 1);
    http_timeouts_phase(line.connection,
                        HTTP_RECEIVING); /* it was not all of a request, and no more will come */
    int64_t begun_us = monotonic_us();
    assert_true(cut_after_us(&line, begun_us) < PATIENCE_US);
    end(&line);
}

static void who_asks_nothing_or_waits_for_us_is_not_cut(void **state)
{
    struct line idle, served;
    begin(&idle);
    begin(&served);
    say(&served);
    http_timeouts_phase(served.connection, HTTP_RECEIVING);
    http_timeouts_phase(served.connection, HTTP_SERVING);
    sleep_us(LIMIT_US + LIMIT_US / 2);
    assert_true(is_open(&idle) && is_open(&served));
    answer(&served); /* the reply's time begins now */
    sleep_us(LIMIT_US / 4);
    assert_true(is_open(&served));
    end(&idle);
    end(&served);
}

static void a_client_that_never_says_anything_is_cut_sooner(void **state)
{
    struct line line;
    int64_t begun_us = monotonic_us();
    begin_with(&line, FIRST_BYTE_US / 1000);
    assert_true(cut_after_us(&line, begun_us) > FIRST_BYTE_US);
    end(&line);
}

/* The idle timeout is for the silence after a request, and it is libmicrohttpd's. */
static void a_client_that_has_asked_may_be_silent(void **state)
{
    struct line line;
    begin_with(&line, FIRST_BYTE_US / 1000);
    say(&line);
    http_timeouts_phase(line.connection, HTTP_RECEIVING);
    answer(&line);
    sleep_us(FIRST_BYTE_US + FIRST_BYTE_US / 2);
    assert_true(is_open(&line));
    end(&line);
}

/* The first byte is what the limit is for: the rest of the request has the request's time. */
static void a_first_byte_begins_the_time_of_the_request(void **state)
{
    struct line line;
    begin_with(&line, FIRST_BYTE_US / 1000);
    int64_t begun_us = monotonic_us();
    say(&line);
    assert_true(cut_after_us(&line, begun_us) > LIMIT_US - LIMIT_US / 8);
    end(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_request_is_cut),
        cmocka_unit_test(the_next_request_has_all_its_time),
        cmocka_unit_test(bytes_after_an_answer_begin_a_request),
        cmocka_unit_test(what_was_sent_before_the_end_is_read),
        cmocka_unit_test(who_asks_nothing_or_waits_for_us_is_not_cut),
        cmocka_unit_test(a_client_that_never_says_anything_is_cut_sooner),
        cmocka_unit_test(a_client_that_has_asked_may_be_silent),
        cmocka_unit_test(a_first_byte_begins_the_time_of_the_request),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
