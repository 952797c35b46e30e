/* Measures ZooKeeper with the three calls of an uncontended lock, without the lock: create, get-children, delete.
 *
 * Each thread has its own session and waits for the answer to each call. The library is the single-threaded one, so
 * threads call it one at a time, and only wait concurrently. */
#include "tools/lockbench/lockbench.h"

#include "base/clock.h"
#include "tools/lockbench/threads.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#define SESSION_MS 10000
#define ANSWER_MS 10000 /* and for a session, to begin */
#define PATH_SIZE 128
/* As long as what the lock writes. */
#define NODE "_c_00000000-0000-0000-0000-000000000000-lock-"
#define DATA "127.0.0.1"

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

struct caller {
    zhandle_t *session;
    char parent[PATH_SIZE / 2], node[PATH_SIZE], made[PATH_SIZE];
    bool answered;
    int code;
};

static void expect_ok(const char *what, int code)
{
    if (code != ZOK)
        die("ZooKeeper, %s: %s", what, zerror(code));
}

static void answer_create(int code, const char *made, const struct Stat *stat, const void *caller)
{
    struct caller *c = (struct caller *)caller;
    (void)stat;
    snprintf(c->made, sizeof c->made, "%s", made ? made : "");
    c->code = code;
    c->answered = true;
}

static void answer_list(int code, const struct String_vector *names, const void *caller)
{
    struct caller *c = (struct caller *)caller;
    (void)names;
    c->code = code;
    c->answered = true;
}

static void answer_delete(int code, const void *caller)
{
    answer_list(code, NULL, caller);
}

/* Sends what there is to be sent, and reads what has come or comes within the time that the library allows. */
static void carry_bytes(zhandle_t *session)
{
    struct pollfd end = {.fd = -1};
    struct timeval left = {0};
    int wanted = 0;
    pthread_mutex_lock(&library);
    int code = zookeeper_interest(session, &end.fd, &wanted, &left);
    pthread_mutex_unlock(&library);
    end.events = (short)((wanted & ZOOKEEPER_READ ? POLLIN : 0) | (wanted & ZOOKEEPER_WRITE ? POLLOUT : 0));
    if (code != ZOK || poll(&end, 1, (int)(left.tv_sec * 1000 + left.tv_usec / 1000)) <= 0)
        return;
    pthread_mutex_lock(&library);
    (void)zookeeper_process(session, (end.revents & ~POLLOUT ? ZOOKEEPER_READ : 0) |
                                         (end.revents & ~POLLIN ? ZOOKEEPER_WRITE : 0));
    pthread_mutex_unlock(&library);
}

/* CODE is that of the call. */
static int await_answer(struct caller *c, int code)
{
    int64_t until_us = monotonic_us() + INT64_C(1000) * ANSWER_MS;
    pthread_mutex_unlock(&library);
    while (code == ZOK && !c->answered && monotonic_us() < until_us)
        carry_bytes(c->session);
    if (code != ZOK)
        return code;
    return c->answered ? c->code : ZOPERATIONTIMEOUT;
}

static void begin_call(struct caller *c)
{
    pthread_mutex_lock(&library);
    c->answered = false;
}

static void make(struct caller *c, const char *path, const char *data, int mode)
{
    begin_call(c);
    int code = await_answer(c, zoo_acreate2(c->session, path, data, (int)strlen(data), &ZOO_OPEN_ACL_UNSAFE,
                                            mode, answer_create, c));
    expect_ok("create", code == ZNODEEXISTS ? ZOK : code);
}

static void caller_turn(void *own, int64_t end_us)
{
    struct caller *c = own;
    (void)end_us; /* an answer that takes longer is late anyway */
    make(c, c->node, DATA, ZOO_EPHEMERAL_SEQUENTIAL);
    begin_call(c);
    expect_ok("get-children", await_answer(c, zoo_aget_children(c->session, c->parent, 0, answer_list, c)));
    begin_call(c);
    expect_ok("delete", await_answer(c, zoo_adelete(c->session, c->made, -1, answer_delete, c)));
}

static void begin_session(struct caller *c)
{
    int64_t until_us = monotonic_us() + INT64_C(1000) * ANSWER_MS;
    pthread_mutex_lock(&library);
    zoo_set_debug_level(0); /* it would write to stderr */
    c->session = zookeeper_init(lock_config.zookeeper_connect, NULL, SESSION_MS, NULL, NULL, 0);
    if (c->session)
        (void)zoo_set_servers_resolution_delay(c->session, -1); /* as the lock does, which gains much by it */
    pthread_mutex_unlock(&library);
    expect_ok("a session", c->session ? ZOK : ZSYSTEMERROR);
    while (zoo_state(c->session) != ZOO_CONNECTED_STATE && monotonic_us() < until_us)
        carry_bytes(c->session);
    expect_ok("a session", zoo_state(c->session) == ZOO_CONNECTED_STATE ? ZOK : ZOPERATIONTIMEOUT);
}

static void caller_begin(void *own, void *shared, size_t member)
{
    struct caller *c = own;
    (void)shared;
    snprintf(c->parent, sizeof c->parent, "/bench/bare-calls-for-a-key-%zu", member);
    snprintf(c->node, sizeof c->node, "%s/" NODE, c->parent);
    begin_session(c);
    make(c, "/bench", "", ZOO_PERSISTENT);
    make(c, c->parent, "", ZOO_PERSISTENT);
    caller_turn(c, 0);
}

static void caller_end(void *own)
{
    struct caller *c = own;
    pthread_mutex_lock(&library);
    zookeeper_close(c->session);
    pthread_mutex_unlock(&library);
}

double zookeeper_bare_cycles(size_t threads, int64_t ms)
{
    static const struct thread_work WORK = {sizeof(struct caller), caller_begin, caller_turn, caller_end};
    return threads_run(&WORK, NULL, threads, ms);
}
