/* How the gate reaches its server: by each of the server's addresses, and what it says if none answers. */
#include "tests/unit/unit.h"

#include "loadtest/own/gate/front.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a name with two addresses ------------------------------------------------------------------------------------------ */

static struct sockaddr_in addresses[2];
static struct addrinfo found[2];

int getaddrinfo(const char *name, const char *service, const struct addrinfo *req, struct addrinfo **pai)
{
    for (size_t i = 0; i < 2; i++)
        found[i] = (struct addrinfo){.ai_family = AF_INET,
                                     .ai_socktype = req->ai_socktype,
                                     .ai_addr = (struct sockaddr *)&addresses[i],
                                     .ai_addrlen = sizeof addresses[i],
                                     .ai_next = i == 0 ? &found[1] : NULL};
    *pai = &found[0];
    return 0;
}

void freeaddrinfo(struct addrinfo *ai)
{
}

/* A socket that has a port of 127.0.0.1, at which nothing listens yet. */
static int bind_port(struct sockaddr_in *ret_address)
{
    socklen_t size = sizeof *ret_address;
    *ret_address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(bound >= 0);
    assert_int_equal(bind(bound, (struct sockaddr *)ret_address, size), 0);
    assert_int_equal(getsockname(bound, (struct sockaddr *)ret_address, &size), 0);
    return bound;
}

/* ---- the tests ------------------------------------------------------------------------------------------------------------ */

static const struct gate_server SERVER = {&redis_protocol, "localhost", "6379"};

static void test_the_second_address_answers(void **state)
{
    struct front front;
    int silent = bind_port(&addresses[0]), server = bind_port(&addresses[1]);
    assert_int_equal(listen(server, 1), 0);
    assert_true(front_open(&front, &SERVER));
    int connected = front_connect(&front);
    assert_true(connected >= 0);
    assert_string_equal(front.problem, "");
    close(connected);
    front_close(&front);
    close(silent);
    close(server);
}

static void test_no_address_answers(void **state)
{
    struct front front;
    int one = bind_port(&addresses[0]), other = bind_port(&addresses[1]);
    assert_true(front_open(&front, &SERVER));
    assert_int_equal(front_connect(&front), -1);
    assert_string_equal(front.problem, "the gate cannot connect to Redis: Connection refused");
    front_close(&front);
    close(one);
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_second_address_answers),
        cmocka_unit_test(test_no_address_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
