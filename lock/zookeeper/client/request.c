/* Requests to ZooKeeper that have a deadline.
 *
 * The library's synchronous calls wait for as long as they please. So each request is handed over by an asynchronous
 * call, and its answer, which comes in another thread, is waited for with a time limit. The library answers each request
 * once, if only by saying that the connection was lost or the handle closed. */
#include "base/clock.h"
#include "base/recorder.h"
#include "lock/zookeeper/client/session_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One request and its answer. The caller and the library both own it: the last to release it frees it, so that neither
 * needs the other to be still there. */
struct request {
    int (*send)(zhandle_t *handle, struct request *request);
    char path[ZOOKEEPER_PATH_SIZE];
    const char *data; /* of the node to be made; read only while it is sent */
    int mode;
    int times_sent;
    int64_t session; /* by which it was sent; 0 if never */
    int64_t sent_us;

    int owners; /* this and what follows is guarded by the mutex, what the answer brings by is_answered */
    pthread_cond_t answered;
    bool is_answered;
    int code; /* the library's */
    struct zookeeper_node node;
    struct zookeeper_children children;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* NULL when out of memory, which the functions below that take a request understand. */
static struct request *new_request(int (*send)(zhandle_t *handle, struct request *request), const char *path)
{
    struct request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->send = send;
    r->owners = 1;
    snprintf(r->path, sizeof r->path, "%s", path);
    pthread_cond_init(&r->answered, NULL);
    return r;
}

static void let_go(struct request *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&mutex);
    bool last = --r->owners == 0;
    pthread_mutex_unlock(&mutex);
    if (!last)
        return;
    pthread_cond_destroy(&r->answered);
    free(r->children.names);
    free(r);
}

/* ---- answers ------------------------------------------------------------------------------------------------ */

static void settle(struct request *r, int code)
{
    /* The library's two codes for a connection that it has given up. */
    bool lost = code == ZOPERATIONTIMEOUT || code == ZRUNTIMEINCONSISTENCY;
    pthread_mutex_lock(&mutex);
    r->code = lost ? ZCONNECTIONLOSS : code;
    r->is_answered = true;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&r->answered);
    let_go(r);
}

static void answer_delete(int code, const void *request)
{
    settle((struct request *)request, code);
}

static void answer_sync(int code, const char *path, const void *request)
{
    (void)path;
    settle((struct request *)request, code);
}

static void answer_watch(int code, const char *data, int length, const struct Stat *stat, const void *request)
{
    (void)data;
    (void)length;
    (void)stat;
    settle((struct request *)request, code);
}

static void answer_find(int code, const struct Stat *stat, const void *request)
{
    struct request *r = (struct request *)request;
    if (code == ZOK)
        r->node.czxid = stat->czxid;
    settle(r, code);
}

/* The path that was asked for, and perhaps a number behind it: another one is no answer to the request. */
static bool is_made_of(const char *path, const char *asked)
{
    size_t length = strlen(asked);
    return strncmp(path, asked, length) == 0 && !strchr(path + length, '/') &&
           strlen(path) < ZOOKEEPER_PATH_SIZE;
}

static void answer_create(int code, const char *path, const struct Stat *stat, const void *request)
{
    struct request *r = (struct request *)request;
    if (code == ZOK && !is_made_of(path, r->path))
        code = ZMARSHALLINGERROR;
    if (code == ZOK) {
        r->node.czxid = stat->czxid;
        snprintf(r->node.path, sizeof r->node.path, "%s", path);
    }
    settle(r, code);
}

/* Copies the names into one block: the pointers, then the bytes. */
static bool copy_names(const struct String_vector *names, struct zookeeper_children *ret_copy)
{
    size_t count = (size_t)names->count;
    size_t size = count * sizeof(char *) + 1;
    for (size_t i = 0; i < count; i++)
        size += strlen(names->data[i]) + 1;
    char **copy = malloc(size);
    if (!copy)
        return false;
    char *byte = (char *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        copy[i] = byte;
        byte = stpcpy(byte, names->data[i]) + 1;
    }
    *ret_copy = (struct zookeeper_children){.count = names->count, .names = copy};
    return true;
}

static void answer_list(int code, const struct String_vector *names, const void *request)
{
    struct request *r = (struct request *)request;
    if (code == ZOK && !copy_names(names, &r->children))
        code = ZMARSHALLINGERROR;
    settle(r, code);
}

/* ---- sending ------------------------------------------------------------------------------------------------ */

static int send_create(zhandle_t *handle, struct request *r)
{
    return zoo_acreate2(handle, r->path, r->data, (int)strlen(r->data), &ZOO_OPEN_ACL_UNSAFE, r->mode,
                        answer_create, r);
}

static int send_list(zhandle_t *handle, struct request *r)
{
    return zoo_aget_children(handle, r->path, 0, answer_list, r);
}

static int send_sync(zhandle_t *handle, struct request *r)
{
    return zoo_async(handle, r->path, answer_sync, r);
}

static int send_delete(zhandle_t *handle, struct request *r)
{
    return zoo_adelete(handle, r->path, -1, answer_delete, r);
}

static int send_find(zhandle_t *handle, struct request *r)
{
    return zoo_aexists(handle, r->path, 0, answer_find, r);
}

/* Not by `exists`, which would leave a watch for ever on a node that has gone. */
static int send_watch(zhandle_t *handle, struct request *r)
{
    return zoo_aget(handle, r->path, 1, answer_watch, r);
}

static int64_t limit_us(int64_t deadline_us)
{
    return monotonic_us() + lock_command_ms(deadline_us) * 1000;
}

/* The library is locked. */
static int hand_over(struct request *r, zhandle_t *handle, int64_t session)
{
    r->session = session;
    r->sent_us = monotonic_us();
    pthread_mutex_lock(&mutex);
    r->owners++; /* the library, until it answers */
    r->is_answered = false;
    pthread_mutex_unlock(&mutex);
    int code = r->send(handle, r);
    if (code == ZOK) {
        r->times_sent++;
    } else { /* not taken */
        pthread_mutex_lock(&mutex);
        r->owners--;
        pthread_mutex_unlock(&mutex);
    }
    return code;
}

/* Hands R to the library. */
static int submit(struct lock *lock, struct request *r, int64_t of_session, int64_t until_us)
{
    struct zookeeper_visit visit;
    int code = zookeeper_enter(lock, of_session, until_us, &visit);
    if (code != ZOK)
        return code;
    code = hand_over(r, visit.handle, visit.session);
    if (code == ZOK && r->send == send_delete)
        zookeeper_tell_waiters(&visit, r->path);
    zookeeper_exit(&visit);
    if (code == ZOK && lock)
        lock->round_trips++;
    return code;
}

/* The mutex is held. */
static bool is_answered_by(struct request *r, int64_t until_us)
{
    while (!r->is_answered && wait_until(&r->answered, &mutex, until_us)) {
    }
    return r->is_answered;
}

/* One server among several has its share of the time, and must leave the others theirs. */
static int wait_for_answer(struct request *r, int64_t until_us)
{
    int64_t share_us = (until_us - r->sent_us) / zookeeper_servers();
    if (share_us < (int64_t)LOCK_TRY_MS * 1000)
        share_us = (int64_t)LOCK_TRY_MS * 1000;
    pthread_mutex_lock(&mutex);
    if (!is_answered_by(r, r->sent_us + share_us)) {
        pthread_mutex_unlock(&mutex);
        zookeeper_io_doubt(r->sent_us);
        pthread_mutex_lock(&mutex);
    }
    int code = is_answered_by(r, until_us) ? r->code : ZOPERATIONTIMEOUT;
    pthread_mutex_unlock(&mutex);
    return code;
}

/* ---- recording (base/recorder.h) ----------------------------------------------------------------------------- */

/* What a request asks for. */
static const struct {
    int (*send)(zhandle_t *handle, struct request *request);
    const char *before_path, *after_path;
} KINDS[] = {{send_create, "create ", ""}, {send_list, "getChildren ", ""},
             {send_sync, "sync ", ""},     {send_delete, "delete ", ""},
             {send_find, "exists ", ""},   {send_watch, "getData ", ", with a watch"}};

/* R may be NULL. */
static unsigned record(const struct request *r)
{
    char text[ZOOKEEPER_PATH_SIZE + 64];
    size_t i = 0;
    if (!r || !thread_recorder)
        return 0;
    while (i + 1 < sizeof KINDS / sizeof KINDS[0] && KINDS[i].send != r->send)
        i++;
    bool is_place = r->send == send_create && r->mode == ZOO_EPHEMERAL_SEQUENTIAL;
    snprintf(text, sizeof text, "%s%s%s%s", KINDS[i].before_path, r->path, KINDS[i].after_path,
             is_place ? ", ephemeral and sequential" : "");
    /* Not the node's data, which is the address of this machine. */
    return record_request("zookeeper", NULL, text, NULL, 0);
}

/* As ZooKeeper's own documentation names the codes. */
static const char *code_name(int code)
{
    switch (code) {
    case ZOK: return "OK";
    case ZNONODE: return "NoNode";
    case ZNODEEXISTS: return "NodeExists";
    case ZNOTEMPTY: return "NotEmpty";
    case ZCONNECTIONLOSS: return "ConnectionLoss";
    case ZSESSIONEXPIRED: return "SessionExpired";
    case ZOPERATIONTIMEOUT: return "no answer in time";
    default: return zerror(code);
    }
}

static void record_children(unsigned recorded, const struct zookeeper_children *children)
{
    char text[RECORDED_ANSWER_MAX + 80];
    size_t used = (size_t)snprintf(text, sizeof text, "%d %s", children->count,
                                   children->count == 1 ? "child" : "children");
    for (int i = 0; i < children->count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : ": ",
                                 children->names[i]);
    record_answer(recorded, text);
}

static void record_code(unsigned recorded, struct request *r, int code)
{
    if (!recorded)
        return;
    if (code == ZOK && r->send == send_list)
        record_children(recorded, &r->children);
    else
        record_answer(recorded, code == ZOK && r->send == send_create ? r->node.path : code_name(code));
}

/* Asks, and asks again where the connection was lost before there was an answer; returns the library's code. */
static int ask(struct lock *lock, struct request *r, int64_t of_session, int64_t deadline_us)
{
    int64_t until_us = limit_us(deadline_us);
    int code = r ? ZCONNECTIONLOSS : ZMARSHALLINGERROR;
    unsigned recorded = record(r);
    while (code == ZCONNECTIONLOSS) {
        code = submit(lock, r, of_session, until_us);
        if (code == ZOK)
            code = wait_for_answer(r, until_us);
        if (monotonic_us() >= until_us)
            break;
    }
    record_code(recorded, r, code);
    return code;
}

static enum lock_status translate(struct lock *lock, int code, const char *path)
{
    enum lock_status status;
    switch (code) {
    case ZOK: return LOCK_OK;
    case ZNONODE:
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
    case ZCLOSING: status = LOCK_LOST; break;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZSESSIONMOVED: status = LOCK_AWAY; break;
    case ZSYSTEMERROR:
    case ZMARSHALLINGERROR: status = LOCK_FAILED; break;
    default: status = LOCK_REFUSED;
    }
    return lock ? lock_fail(lock, status, "ZooKeeper, %s: %s", path, zerror(code)) : status;
}

/* ---- the requests ------------------------------------------------------------------------------------------- */

/* Of a request that was answered. */
static void take_children(struct request *r, struct zookeeper_children *ret_children)
{
    *ret_children = r->children;
    r->children.names = NULL;
}

/* Two requests on one journey: the server does what a session asks for in the order in which it was asked. Not asked
 * again, or there would be two nodes. They are recorded when they are answered, and not if their container is missing: then they are
 * sent a second time (zookeeper_join). */
static int create_and_list(struct lock *lock, int64_t deadline_us, struct request *create,
                           struct request *list, struct zookeeper_children *ret_children)
{
    int64_t until_us = limit_us(deadline_us);
    int code = submit(lock, create, 0, until_us);
    if (code != ZOK) {
        record_code(record(create), create, code);
        return code;
    }
    int list_code = submit(lock, list, create->session, until_us);
    if (list_code == ZOK)
        list_code = wait_for_answer(list, until_us); /* the second to come: so that we are woken once */
    code = wait_for_answer(create, until_us);
    if (code != ZNONODE) { /* otherwise the container is missing, and zookeeper_create_parents comes next */
        unsigned create_recorded = record(create), list_recorded = record(list);
        record_code(create_recorded, create, code);
        record_code(list_recorded, list, list_code);
    }
    if (code == ZOK && list_code == ZOK)
        take_children(list, ret_children);
    return code;
}

enum lock_status zookeeper_create(struct lock *lock, int64_t deadline_us, const char *parent,
                                  const char *name, const char *data, struct zookeeper_node *ret_node,
                                  struct zookeeper_children *ret_children)
{
    char path[ZOOKEEPER_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", parent, name);
    struct request *create = new_request(send_create, path);
    struct request *list = new_request(send_list, parent);
    int code = ZMARSHALLINGERROR;
    *ret_node = (struct zookeeper_node){0};
    *ret_children = (struct zookeeper_children){0};
    if (create && list) {
        create->data = data;
        create->mode = ZOO_EPHEMERAL_SEQUENTIAL;
        code = create_and_list(lock, deadline_us, create, list, ret_children);
        if (code == ZOK)
            *ret_node = create->node;
        ret_node->session = create->session;
    }
    let_go(create);
    let_go(list);
    return translate(lock, code, path);
}

/* Not recorded, because chance decides whether an order has to do it: ZooKeeper removes an empty container within a minute. */
static int create_parent(struct lock *lock, int64_t deadline_us, const char *path, int mode)
{
    struct request *r = new_request(send_create, path);
    if (!r)
        return ZMARSHALLINGERROR;
    r->data = "";
    r->mode = mode;
    struct recorder *recorder = record_nothing();
    int code = ask(lock, r, 0, deadline_us);
    thread_recorder = recorder;
    let_go(r);
    if (code == ZUNIMPLEMENTED && mode == ZOO_CONTAINER)
        return create_parent(lock, deadline_us, path, ZOO_PERSISTENT);
    return code == ZNODEEXISTS ? ZOK : code;
}

enum lock_status zookeeper_create_parents(struct lock *lock, int64_t deadline_us, const char *path)
{
    char above[ZOOKEEPER_PATH_SIZE];
    int code = create_parent(lock, deadline_us, path, ZOO_CONTAINER);
    const char *last = strrchr(path, '/');
    if (code != ZNONODE)
        return translate(lock, code, path);
    if (last == path)
        return lock_fail(lock, LOCK_REFUSED, "ZooKeeper: the path in ZOOKEEPER_CONNECT is not there");
    snprintf(above, sizeof above, "%.*s", (int)(last - path), path);
    enum lock_status status = zookeeper_create_parents(lock, deadline_us, above);
    if (status != LOCK_OK)
        return status;
    return translate(lock, create_parent(lock, deadline_us, path, ZOO_CONTAINER), path);
}

enum lock_status zookeeper_list(struct lock *lock, int64_t deadline_us, int64_t session, const char *path,
                                struct zookeeper_children *ret_children)
{
    struct request *r = new_request(send_list, path);
    int code = ask(lock, r, session, deadline_us);
    if (code == ZOK)
        take_children(r, ret_children);
    let_go(r);
    return translate(lock, code, path);
}

enum lock_status zookeeper_list_latest(struct lock *lock, int64_t deadline_us, int64_t session,
                                       const char *path, struct zookeeper_children *ret_children)
{
    struct request *r = new_request(send_sync, path);
    enum lock_status status = translate(lock, ask(lock, r, session, deadline_us), path);
    let_go(r);
    return status == LOCK_OK ? zookeeper_list(lock, deadline_us, session, path, ret_children) : status;
}

enum lock_status zookeeper_delete(struct lock *lock, int64_t deadline_us, int64_t session, const char *path)
{
    struct request *r = new_request(send_delete, path);
    int code = ask(lock, r, session, deadline_us);
    if (code == ZNONODE && r && r->times_sent > 1) /* the first did it, and its answer was lost */
        code = ZOK;
    let_go(r);
    return translate(lock, code, path);
}

enum lock_status zookeeper_find(struct lock *lock, int64_t deadline_us, int64_t session, const char *path,
                                int64_t *ret_czxid)
{
    struct request *r = new_request(send_find, path);
    int code = ask(lock, r, session, deadline_us);
    if (code == ZOK && r)
        *ret_czxid = r->node.czxid;
    let_go(r);
    return translate(lock, code, path);
}

/* A waiter asks for the children before it wakes. If this process deletes the node that it watches, the question goes right
 * behind the delete, without waiting for the watch to fire. So it also goes before the next request of the thread that has
 * released, which the server would first write to its disk. The answer may be outdated only if the delete failed: then the
 * waiter finds the same node before it, and watches again. */
static void ask_at_once(struct zookeeper_waiter *waiter, zhandle_t *handle)
{
    (void)hand_over(waiter->context, handle, waiter->session);
}

/* The watched node of a waiter, who is asleep. */
static bool has_gone(void *context)
{
    const struct zookeeper_waiter *waiter = context;
    int64_t czxid;
    return zookeeper_find(NULL, INT64_MAX, waiter->session, waiter->path, &czxid) == LOCK_LOST;
}

/* Watches and waits. LIST, which may be NULL, is sent when this process deletes the node or when the watch fires. */
static enum lock_status await_change(struct lock *lock, int64_t deadline_us, int64_t session,
                                     const char *path, enum zookeeper_gone gone, struct request *list)
{
    /* Removed also where the explorer ends the thread in its sleep. */
    struct zookeeper_waiter waiter __attribute__((cleanup(zookeeper_remove_waiter))) = {
        .session = session, .path = path, .on_change = list ? ask_at_once : NULL, .context = list};
    struct request *r = new_request(send_watch, path);
    zookeeper_add_waiter(&waiter); /* before the watch is set, which may fire at once */
    int code = ask(lock, r, session, deadline_us);
    let_go(r);
    if (code != ZOK && code != ZNONODE)
        return translate(lock, code, path);
    if (code == ZNONODE && gone == GONE_IS_A_CHANGE)
        return LOCK_OK;
    if (!begin_sleep(lock->observer, code == ZOK ? has_gone : NULL, &waiter))
        deadline_us = 0;
    enum lock_status status = zookeeper_wait(&waiter, deadline_us);
    if (status != LOCK_OK)
        return lock_fail(lock, status, "ZooKeeper: the node %s was not deleted in time", path);
    lock->wake_ups++;
    return LOCK_OK;
}

enum lock_status zookeeper_await(struct lock *lock, int64_t deadline_us, int64_t session, const char *path,
                                 enum zookeeper_gone gone, struct zookeeper_children *ret_children)
{
    char parent[ZOOKEEPER_PATH_SIZE];
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    /* Who is held in his sleep would learn what is old by the time he wakes. */
    bool is_held = lock->observer && lock->observer->on_sleep;
    struct request *list = ret_children && !is_held ? new_request(send_list, parent) : NULL;
    enum lock_status status = await_change(lock, deadline_us, session, path, gone, list);
    if (status == LOCK_OK && list && list->times_sent) {
        lock->round_trips++;
        if (wait_for_answer(list, limit_us(deadline_us)) == ZOK)
            take_children(list, ret_children);
    }
    let_go(list);
    return status;
}
