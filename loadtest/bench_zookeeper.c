/* What ZooKeeper itself can do with an uncontended lock's three calls, without the lock: create, get-children, delete.
 *
 * One session for all threads, as the locks have it, and the library's own calls, each of which waits for its answer. */
#define THREADED /* declares the calls that wait */
#include "loadtest/bench_against.h"

#include "loadtest/interrupt.h"
#include "service/steps.h"

#include <stdio.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#define SESSION_MS 10000
#define CONNECT_MS 10000
#define POLL_MS 5
#define PATH_SIZE 128
/* As long as what the lock writes. */
#define NODE "_c_00000000-0000-0000-0000-000000000000-lock-"
#define DATA "127.0.0.1"

struct caller {
    zhandle_t *session;
    char parent[PATH_SIZE / 2], node[PATH_SIZE];
};

static bool explain(const char *what, int code, char *ret_reason)
{
    snprintf(ret_reason, REASON_SIZE, "ZooKeeper, %s: %s", what, zerror(code));
    return false;
}

static bool caller_turn(void *own, int64_t end_us, char *ret_reason)
{
    const struct caller *c = own;
    char made[PATH_SIZE];
    struct Stat stat;
    struct String_vector children;
    (void)end_us; /* the session's time-out ends a call that gets no answer */
    int code = zoo_create2(c->session, c->node, DATA, (int)strlen(DATA), &ZOO_OPEN_ACL_UNSAFE,
                           ZOO_EPHEMERAL_SEQUENTIAL, made, sizeof made, &stat);
    if (code != ZOK)
        return explain("create", code, ret_reason);
    code = zoo_get_children(c->session, c->parent, 0, &children);
    if (code != ZOK)
        return explain("get-children", code, ret_reason);
    deallocate_String_vector(&children);
    code = zoo_delete(c->session, made, -1);
    return code == ZOK || explain("delete", code, ret_reason);
}

static bool make_parent(zhandle_t *session, const char *path, char *ret_reason)
{
    int code = zoo_create(session, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, NULL, 0);
    return code == ZOK || code == ZNODEEXISTS || explain("create", code, ret_reason);
}

static bool caller_begin(void *own, void *shared, size_t member, char *ret_reason)
{
    struct caller *c = own;
    c->session = shared;
    snprintf(c->parent, sizeof c->parent, "/bench/bare-calls-for-a-key-%zu", member);
    snprintf(c->node, sizeof c->node, "%s/" NODE, c->parent);
    return make_parent(c->session, "/bench", ret_reason) && make_parent(c->session, c->parent, ret_reason) &&
           caller_turn(c, 0, ret_reason);
}

static void caller_end(void *own)
{
    (void)own;
}

static bool await_session(zhandle_t *session, char *ret_reason)
{
    int64_t until_us = monotonic_us() + INT64_C(1000) * CONNECT_MS;
    *ret_reason = 0;
    while (zoo_state(session) != ZOO_CONNECTED_STATE) {
        if (!sleep_unless_interrupted(POLL_MS))
            return false;
        if (monotonic_us() >= until_us)
            return explain("a session", ZOPERATIONTIMEOUT, ret_reason);
    }
    return true;
}

bool zookeeper_bare_cycles(const struct lock_config *config, size_t threads, int64_t ms,
                           struct progress *progress, double *ret_per_s, char *ret_reason)
{
    static const struct team_work WORK = {sizeof(struct caller), caller_begin, caller_turn, caller_end};
    zoo_set_debug_level(0); /* it would write to stderr */
    zhandle_t *session = zookeeper_init(config->zookeeper_connect, NULL, SESSION_MS, NULL, NULL, 0);
    if (!session) {
        snprintf(ret_reason, REASON_SIZE, "ZooKeeper: no session for %s", config->zookeeper_connect);
        return false;
    }
    (void)zoo_set_servers_resolution_delay(session, -1); /* as the lock does, which gains much by it */
    bool well = await_session(session, ret_reason) &&
                team_run(&WORK, session, threads, ms, progress, ret_per_s, ret_reason);
    zookeeper_close(session);
    return well;
}
