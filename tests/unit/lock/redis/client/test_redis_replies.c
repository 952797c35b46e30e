/* What a Redis server may say to a lock: the answer that was asked for counts, and no other; and no answer costs more
 * than a lock's answer may. The servers are threads here, each of which says the same thing to every request. */
#include "tests/unit/unit.h"

#include "base/clock.h"

#include "lock/redis/client/connection.h"
#include "lock/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SERVERS = 3, LEASE_MS = 10000, SHORT_US = 500000 };

static struct server {
    char path[108]; /* of its socket */
    int listener;
    _Atomic(const char *) says;
    atomic_bool for_ever; /* the last byte of what it says, again and again */
    pthread_t thread;
} servers[SERVERS], late;

static char folder[] = "/tmp/oversell-test-XXXXXX";

static bool say(int client, const char *text, size_t size)
{
    return send(client, text, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static void answer(struct server *s, int client)
{
    char request[4096], more[4096];
    while (read(client, request, sizeof request) > 0) {
        const char *says = atomic_load(&s->says);
        bool heard = say(client, says, strlen(says));
        memset(more, says[strlen(says) - 1], sizeof more);
        while (heard && atomic_load(&s->for_ever))
            heard = say(client, more, sizeof more);
        if (!heard)
            return;
    }
}

/* One client after the other. */
static void *serve(void *arg)
{
    struct server *s = arg;
    int client;
    while ((client = accept(s->listener, NULL, NULL)) >= 0) {
        answer(s, client);
        close(client);
    }
    return NULL;
}

static void start(struct server *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, s->path, sizeof s->path);
    s->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    atomic_store(&s->says, "+OK\r\n");
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static int start_all(void **state)
{
    static char one[120], all[2048];
    static struct lock_config config;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < SERVERS; i++) {
        snprintf(servers[i].path, sizeof servers[i].path, "%s/%d", folder, i);
        start(&servers[i]);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%sunix://%s", i ? "," : "", servers[i].path);
    }
    snprintf(one, sizeof one, "unix://%s", servers[0].path);
    config = (struct lock_config){
        .database_url = "",
        .redis_url = one,
        .redlock_urls = all,
        .zookeeper_connect = "",
        .etcd_endpoints = "",
        .prefix = "oversell",
    };
    lock_configure(&config);
    return 0;
}

static void stop(struct server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    unlink(s->path);
}

static int stop_all(void **state)
{
    for (int i = 0; i < SERVERS; i++)
        stop(&servers[i]);
    return rmdir(folder);
}

/* Tries for US, while all servers say SAYS, or the last of them something else. */
static enum lock_status try_for(const struct lock_driver *driver, int64_t us, const char *says,
                                const char *last_says, char ret_error[static 200])
{
    struct lock *lock;
    struct lock_grant grant;
    for (int i = 0; i < SERVERS; i++)
        atomic_store(&servers[i].says, i < SERVERS - 1 ? says : last_says);
    assert_int_equal(lock_open(driver, &lock), LOCK_OK);
    lock->lease_ms = LEASE_MS;
    enum lock_status status = lock_acquire(lock, "product:1", monotonic_us() + us, &grant);
    snprintf(ret_error, 200, "%s", lock->error);
    lock_close(lock);
    return status;
}

static void test_a_vote_is_the_answer_that_was_asked_for(void **state)
{
    char error[200];
    assert_int_equal(try_for(&redlock, PATIENCE_US, "+OK\r\n", "+OK\r\n", error), LOCK_OK);
    assert_int_equal(try_for(&redlock, PATIENCE_US, "+OK\r\n", "$-1\r\n", error), LOCK_OK);
    assert_int_equal(try_for(&redlock, PATIENCE_US, "+OK\r\n", "*0\r\n", error), LOCK_OK);
}

static void test_another_answer_is_no_vote(void **state)
{
    static const char *const ANSWERS[] = {":1\r\n",    "+PONG\r\n",     "+QUEUED\r\n", "$2\r\nOK\r\n",
                                          "+OKAY\r\n", "*1\r\n+OK\r\n", ":0\r\n",      "+ok\r\n"};
    char error[200];
    for (size_t i = 0; i < COUNT(ANSWERS); i++) {
        enum lock_status status = try_for(&redlock, SHORT_US, ANSWERS[i], ANSWERS[i], error);
        if (status != LOCK_AWAY)
            fail_msg("%zu: %s: %s", i, lock_status_name(status), error);
    }
}

static void test_an_answer_is_as_long_as_was_asked_for(void **state)
{
    static const struct lock_driver *const LOCKS[] = {&redis_lock, &redis_reentrant, &redis_fenced};
    static const char *const ANSWERS[] = {"*1000000000\r\n", "*2147483647\r\n", "*9\r\n", "*1\r\n*1\r\n"};
    char error[200];
    for (size_t i = 0; i < COUNT(LOCKS); i++)
        for (size_t j = 0; j < COUNT(ANSWERS); j++) {
            assert_int_equal(try_for(LOCKS[i], 0, ANSWERS[j], ANSWERS[j], error), LOCK_AWAY);
            assert_non_null(strstr(error, "more than was asked for"));
        }
}

static void test_an_answer_that_does_not_end(void **state)
{
    static const char *const ANSWERS[] = {"$500000000\r\nx", "+x", "-x", ":1"};
    char error[200];
    atomic_store(&servers[0].for_ever, true);
    for (size_t i = 0; i < COUNT(ANSWERS); i++) {
        assert_int_equal(try_for(&redis_lock, 0, ANSWERS[i], ANSWERS[i], error), LOCK_AWAY);
        assert_non_null(strstr(error, "more than was asked for"));
    }
    atomic_store(&servers[0].for_ever, false);
}

/* The servers say the same to SCRIPT LOAD, so it is as long as a SHA-1. */
static void test_a_fencing_token_is_a_number(void **state)
{
    static const char *const ANSWERS[] = {"$40\r\nffffffffffffffffffffffffffffffffffffffff\r\n",
                                          "$40\r\n000000000000000000000000000000000000007f\r\n",
                                          "$40\r\n9999999999999999999999999999999999999999\r\n"};
    static const char SEVEN[] = "$40\r\n0000000000000000000000000000000000000007\r\n";
    char error[200];
    for (size_t i = 0; i < COUNT(ANSWERS); i++) {
        assert_int_equal(try_for(&redis_fenced, 0, ANSWERS[i], ANSWERS[i], error), LOCK_REFUSED);
        assert_non_null(strstr(error, "keeps no number"));
    }
    assert_int_equal(try_for(&redis_fenced, 0, SEVEN, SEVEN, error), LOCK_OK);
}

static enum lock_status ping(struct redis *redis)
{
    AUTO_REPLY reply = NULL;
    return redis_command(redis, NULL, PATIENCE_US / 1000, &reply, "PING");
}

/* A caller that was served through one connection must not be refused through another, which still rests after a failure. */
static void test_a_success_ends_the_rest_of_other_connections(void **state)
{
    char url[120];
    snprintf(late.path, sizeof late.path, "%s/late", folder);
    snprintf(url, sizeof url, "unix://%s", late.path);
    struct redis *resting = redis_new(url, strlen(url)), *other = redis_new(url, strlen(url));
    assert_true(resting && other);
    for (int i = 0; i < 3; i++) /* the second failure is the first that is followed by a pause */
        assert_int_equal(ping(resting), LOCK_AWAY);
    start(&late);
    assert_int_equal(ping(other), LOCK_OK);
    redis_free(other); /* so that the server turns to the next client */
    assert_int_equal(ping(resting), LOCK_OK);
    redis_free(resting);
    stop(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_vote_is_the_answer_that_was_asked_for),
        cmocka_unit_test(test_another_answer_is_no_vote),
        cmocka_unit_test(test_an_answer_is_as_long_as_was_asked_for),
        cmocka_unit_test(test_an_answer_that_does_not_end),
        cmocka_unit_test(test_a_fencing_token_is_a_number),
        cmocka_unit_test(test_a_success_ends_the_rest_of_other_connections),
    };
    return cmocka_run_group_tests(tests, start_all, stop_all);
}
