/* A message wakes one waiter of a channel, and who has no use for being woken hands it on to the next. The server is a
 * thread here, which confirms every subscription and says what a test wants it to. */
#include "tests/unit/unit.h"

#include "base/clock.h"

#include "lock/redis/client/wakeup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SHORT_US = 50000, JOIN_MS = PATIENCE_US / 1000 };

static const char CHANNEL[] = "channel", OTHER[] = "elsewhere";

static char folder[] = "/tmp/oversell-test-XXXXXX", path[108], url[120];
static int listener;
static atomic_int client = -1;
static pthread_t thread;

static bool say(const char *kind, const char *channel, const char *last)
{
    char text[100];
    int length = snprintf(text, sizeof text, "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n%s\r\n", strlen(kind), kind,
                          strlen(channel), channel, last);
    return send(atomic_load(&client), text, (size_t)length, MSG_NOSIGNAL) == length;
}

/* What is no command is nothing. */
static void confirm(const char *command)
{
    if (strstr(command, "SUBSCRIBE"))
        (void)say(strstr(command, "UNSUBSCRIBE") ? "unsubscribe" : "subscribe",
                  strstr(command, OTHER) ? OTHER : CHANNEL, ":1");
}

static void *serve(void *arg)
{
    char request[4096];
    ssize_t size;
    (void)arg;
    int fd = accept(listener, NULL, NULL);
    atomic_store(&client, fd);
    while ((size = read(fd, request, sizeof request - 1)) > 0) {
        request[size] = '\0';
        char *rest = request;
        for (const char *command; (command = strsep(&rest, "*"));) /* each begins with one */
            confirm(command);
    }
    close(fd);
    return NULL;
}

static int start(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/0", folder);
    snprintf(url, sizeof url, "unix://%s", path);
    memcpy(address.sun_path, path, sizeof path);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 8), 0);
    return pthread_create(&thread, NULL, serve, NULL);
}

static int stop(void **state)
{
    shutdown(atomic_load(&client), SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
    unlink(path);
    return rmdir(folder);
}

enum { WAITERS = 3 };

static struct lock locks[WAITERS];
static struct redis_waiter *waiters[WAITERS];

static struct redis_waiter *join(struct lock *lock, const char *channel)
{
    struct redis_waiter *waiter;
    assert_int_equal(redis_wakeup_join(lock, url, strlen(url), channel, JOIN_MS, &waiter), LOCK_OK);
    return waiter;
}

static void join_all(void)
{
    for (int i = 0; i < WAITERS; i++)
        waiters[i] = join(&locks[i], CHANNEL);
}

static void publish(const char *channel)
{
    assert_true(say("message", channel, "$1\r\n0"));
}

static bool is_woken(int i, int64_t within_us)
{
    return redis_wakeup_wait(&locks[i], waiters[i], monotonic_us() + within_us);
}

static void leave_all(int first)
{
    for (int i = first; i < WAITERS; i++)
        redis_wakeup_leave(waiters[i], LOCK_OK);
}

static void test_a_message_wakes_who_has_waited_longest(void **state)
{
    join_all();
    publish(CHANNEL);
    assert_true(is_woken(0, PATIENCE_US));
    assert_false(is_woken(1, SHORT_US));
    assert_false(is_woken(2, 0));
    leave_all(0);
}

static void test_an_odd_message_wakes_nobody(void **state)
{
    join_all();
    assert_true(say("message", "a channel of nobody's", "$1\r\n0"));
    assert_true(say("message", "", "$-1"));
    assert_true(say("pmessage", CHANNEL, ":0"));
    assert_true(say("", CHANNEL, "+"));
    assert_false(is_woken(0, SHORT_US));
    publish(CHANNEL); /* the connection is of use all the same */
    assert_true(is_woken(0, PATIENCE_US));
    leave_all(0);
}

/* What becomes of one that was woken and has tried. */
static void test_a_try_that_failed_wakes_the_next(void **state)
{
    static const struct {
        enum lock_status status;
        bool hands_on;
    } cases[] = {
        {LOCK_OK, false},        /* it will tell when it releases */
        {LOCK_TIMED_OUT, false}, /* its holder will */
        {LOCK_AWAY, true},       {LOCK_REFUSED, true}, {LOCK_FAILED, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        join_all();
        publish(CHANNEL);
        assert_true(is_woken(0, PATIENCE_US));
        redis_wakeup_leave(waiters[0], cases[i].status);
        assert_int_equal(is_woken(1, cases[i].hands_on ? PATIENCE_US : SHORT_US), cases[i].hands_on);
        assert_false(is_woken(2, 0));
        leave_all(1);
    }
}

/* The message came when its time was up: it has not tried since. */
static void test_a_message_that_came_too_late_wakes_the_next(void **state)
{
    static const struct {
        enum lock_status status;
        bool hands_on;
    } cases[] = {{LOCK_OK, false}, {LOCK_TIMED_OUT, true}, {LOCK_AWAY, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lock lock = {0};
        struct redis_waiter *after_it = join(&lock, OTHER);
        join_all();
        assert_false(is_woken(0, 0));
        publish(CHANNEL);
        publish(OTHER);
        assert_true(redis_wakeup_wait(&lock, after_it, monotonic_us() + PATIENCE_US)); /* both are heard */
        redis_wakeup_leave(after_it, LOCK_OK);
        redis_wakeup_leave(waiters[0], cases[i].status);
        assert_int_equal(is_woken(1, cases[i].hands_on ? PATIENCE_US : SHORT_US), cases[i].hands_on);
        assert_false(is_woken(2, 0));
        leave_all(1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_wakes_who_has_waited_longest),
        cmocka_unit_test(test_an_odd_message_wakes_nobody),
        cmocka_unit_test(test_a_try_that_failed_wakes_the_next),
        cmocka_unit_test(test_a_message_that_came_too_late_wakes_the_next),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests(tests, start, stop);
}
