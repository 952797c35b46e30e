/* What the recorder says of a watch in etcd: the event, or which side ended the watch. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/recorder.h"
#include "lock/etcd/client/client.h"
#include "lock/registry.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CREATED "{\"result\":{\"header\":{\"revision\":\"5\"},\"created\":true}}\n"
enum { REVISION = 5, WAIT_US = 300 * 1000 };

/* Answers one watch. */
struct server {
    int listener;
    const char *stream; /* JSON lines */
    bool hangs_up;      /* then ends the connection; otherwise the client does */
};

static void *serve(void *arg)
{
    static const char HEAD[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
    const struct server *server = arg;
    char bytes[4096];
    int fd = accept(server->listener, NULL, NULL);
    ssize_t got = fd < 0 ? -1 : recv(fd, bytes, sizeof bytes, 0);
    if (got > 0 && send(fd, HEAD, strlen(HEAD), MSG_NOSIGNAL) > 0 &&
        send(fd, server->stream, strlen(server->stream), MSG_NOSIGNAL) > 0 && !server->hangs_up)
        while (recv(fd, bytes, sizeof bytes, 0) > 0) {
        }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static int listen_on_loopback(char *ret_url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    snprintf(ret_url, size, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return listener;
}

/* Waits for the deletion of a key, with a server that sends STREAM, and compares the answer that is recorded. */
static void assert_watch(const char *stream, bool hangs_up, enum lock_status expected, const char *answer)
{
    char url[64];
    struct server server = {.stream = stream, .hangs_up = hangs_up};
    struct etcd_lease lease = {.id = 1, .length_us = INT64_C(3600000000)};
    struct lock *lock;
    pthread_t thread;
    const void *connection;
    server.listener = listen_on_loopback(url, sizeof url);
    lock_configure(&(const struct lock_config){.etcd_endpoints = url, .prefix = "oversell"});
    assert_int_equal(lock_open(&etcd_mutex, &lock), LOCK_OK);
    assert_int_equal(pthread_create(&thread, NULL, serve, &server), 0);
    thread_recorder = recorder_new();
    lease.end_us = monotonic_us() + lease.length_us;
    int64_t wait_us = expected == LOCK_TIMED_OUT ? WAIT_US : PATIENCE_US;
    assert_int_equal(
        etcd_await_deletion(etcd_of(lock), lock, monotonic_us() + wait_us, "a2V5", REVISION, &lease),
        expected);
    json_t *request = recorder_request(thread_recorder, 0, &connection);
    assert_string_equal(json_string_value(json_object_get(request, "text")), "watch(key), for its deletion");
    assert_string_equal(json_string_value(json_object_get(request, "answer")), answer);
    json_decref(request);
    recorder_free(thread_recorder);
    thread_recorder = NULL;
    pthread_join(thread, NULL);
    lock_close(lock);
    close(server.listener);
}

static void test_the_key_was_deleted(void **state)
{
    assert_watch(CREATED
                 "{\"result\":{\"header\":{\"revision\":\"6\"},\"events\":[{\"type\":\"DELETE\"}]}}\n",
                 false, LOCK_OK, "deleted");
}

static void test_the_client_has_no_more_time(void **state)
{
    assert_watch(CREATED, false, LOCK_TIMED_OUT, "ended by the client");
}

static void test_the_connection_was_lost(void **state)
{
    assert_watch(CREATED, true, LOCK_OK, "no answer: the connection is lost");
}

static void test_etcd_ended_the_watch(void **state)
{
    assert_watch(CREATED "{\"result\":{\"header\":{},\"canceled\":true}}\n", false, LOCK_OK, "ended by etcd");
    assert_watch("{\"error\":{\"grpc_code\":14,\"message\":\"no leader\"}}\n", false, LOCK_OK,
                 "ended by etcd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_key_was_deleted),
        cmocka_unit_test(test_the_client_has_no_more_time),
        cmocka_unit_test(test_the_connection_was_lost),
        cmocka_unit_test(test_etcd_ended_the_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
