/* The process's session with ZooKeeper, and requests that have a deadline.
 *
 * The library has two threads of its own for a session and calls us from them: `on_event` when the session changes
 * or a watch fires, and `answer_…` for each request, exactly once. A third thread, ours, keeps the session: it begins
 * it, ends it, replaces it when it is lost, and clears away what others had to leave behind. Only that thread calls
 * what may block (looking up names, closing); a request is handed to the library and then waited for with a time limit.
 *
 * One mutex guards everything here. It is never held while the library is called. */
#include "lock/zookeeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

enum {
    PACE_MS = 200, /* between two attempts of the keeper's at the same thing */
    BREAK_MS = 5000,
};

/* Somebody who waits for a watch to fire. */
struct waiter {
    struct waiter *next;
    pthread_cond_t woken;
    int64_t session;
    const char *path;
    bool fired;
};

/* Nodes that the keeper is to delete: all whose path begins with PATH. */
struct abandoned {
    struct abandoned *next;
    int64_t session;
    char path[ZOOKEEPER_PATH_SIZE];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* the session, or what the keeper is to do; seldom */
static pthread_condattr_t on_monotonic_clock;
static bool keeper_runs;
static struct waiter *waiters;
static struct abandoned *abandoned;

static struct {
    zhandle_t *handle;  /* the keeper's to set */
    int64_t id;         /* the server's number of the session; 0 while there is none */
    bool connected;     /* as we were told last */
    bool over;          /* the keeper is to close the handle and begin anew */
    int callers;        /* threads inside the library, by whom the handle must not be closed */
    int64_t lease_ms;   /* its time-out, as asked for; 0 while nobody has needed a session */
    bool only_for_ping; /* nobody who has a wish about the time-out has used it yet */
    uint64_t lost;
} session;

static pthread_once_t initialized = PTHREAD_ONCE_INIT;

static void initialize(void)
{
    pthread_condattr_init(&on_monotonic_clock);
    pthread_condattr_setclock(&on_monotonic_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &on_monotonic_clock);
    zoo_set_debug_level(0); /* it would write to stderr; we tell in lock->error what went wrong */
}

/* Waits on CONDITION, with the mutex held. False when UNTIL has come. */
static bool wait_until(pthread_cond_t *condition, int64_t until_us)
{
    if (monotonic_us() >= until_us)
        return false;
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    pthread_cond_timedwait(condition, &mutex, &until);
    return true;
}

/* ---- the session ---------------------------------------------------------------------------------------- */

/* The mutex is held. What the library still owes an answer it will answer when the keeper closes it. */
static void end_session(void)
{
    session.lost += session.id && !session.only_for_ping;
    session.id = 0;
    session.connected = false;
    session.over = true;
    for (struct waiter *w = waiters; w; w = w->next)
        pthread_cond_signal(&w->woken);
    pthread_cond_broadcast(&changed);
}

static void on_session_event(zhandle_t *handle, int state)
{
    if (session.over) /* these are its last words */
        return;
    if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
        end_session();
        return;
    }
    session.connected = state == ZOO_CONNECTED_STATE;
    if (session.connected)
        session.id = zoo_client_id(handle)->client_id;
    pthread_cond_broadcast(&changed);
}

static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)context;
    pthread_mutex_lock(&mutex);
    if (type == ZOO_SESSION_EVENT)
        on_session_event(handle, state);
    for (struct waiter *w = waiters; w && type != ZOO_SESSION_EVENT; w = w->next) {
        if (w->session != session.id || strcmp(w->path, path) != 0)
            continue;
        w->fired = true;
        pthread_cond_signal(&w->woken);
    }
    pthread_mutex_unlock(&mutex);
}

/* The keeper's, as all down to keep(); the mutex is held when they are called and when they return. */
static void close_session(void)
{
    while (session.callers)
        pthread_cond_wait(&changed, &mutex);
    zhandle_t *handle = session.handle;
    session.handle = NULL;
    pthread_mutex_unlock(&mutex);
    zookeeper_close(handle);
    pthread_mutex_lock(&mutex);
    session.over = false;
}

static void begin_session(void)
{
    int lease_ms = session.lease_ms < INT32_MAX ? (int)session.lease_ms : INT32_MAX;
    pthread_mutex_unlock(&mutex);
    zhandle_t *handle = zookeeper_init(lock_config.zookeeper_connect, on_event, lease_ms, NULL, NULL, 0);
    pthread_mutex_lock(&mutex);
    session.handle = handle; /* NULL where a name is not known yet; tried again */
    pthread_cond_broadcast(&changed);
}

/* Deletes what begins with PATH, of a session that may have ended. True when nothing is left to be done. */
static bool clear_away(int64_t of_session, const char *path)
{
    char found[ZOOKEEPER_PATH_SIZE];
    char *parent = strdup(path);
    struct zookeeper_children children = {0};
    if (!parent)
        return false;
    size_t parent_length = (size_t)(strrchr(parent, '/') - parent);
    parent[parent_length] = '\0';
    enum lock_status status = zookeeper_list_latest(NULL, INT64_MAX, of_session, parent, &children);
    for (int i = 0; status == LOCK_OK && i < children.count; i++) {
        int length = snprintf(found, sizeof found, "%s/%s", parent, children.names[i]);
        if (length < (int)sizeof found && strncmp(found, path, strlen(path)) == 0)
            status = zookeeper_delete(NULL, INT64_MAX, of_session, found);
    }
    free(children.names);
    free(parent);
    return status == LOCK_OK || status == LOCK_LOST;
}

/* Takes the first of the list, and puts it back where it could not be done. */
static bool clear_one(void)
{
    struct abandoned *first = abandoned;
    abandoned = first->next;
    pthread_mutex_unlock(&mutex);
    bool done = clear_away(first->session, first->path);
    pthread_mutex_lock(&mutex);
    if (done) {
        free(first);
    } else {
        first->next = abandoned;
        abandoned = first;
    }
    return done;
}

static void *keep(void *unused)
{
    int64_t next_begin_us = 0;
    int64_t next_clear_us = 0;
    pthread_mutex_lock(&mutex);
    while (true) {
        int64_t now_us = monotonic_us();
        if (session.over && session.handle) {
            close_session();
        } else if (!session.handle && now_us >= next_begin_us) {
            next_begin_us = now_us + PACE_MS * 1000;
            session.over = false;
            begin_session();
        } else if (abandoned && now_us >= next_clear_us) {
            if (!clear_one())
                next_clear_us = monotonic_us() + PACE_MS * 1000;
        } else {
            int64_t until_us = abandoned ? next_clear_us : INT64_MAX;
            if (!session.handle && next_begin_us < until_us)
                until_us = next_begin_us;
            wait_until(&changed, until_us);
        }
    }
    return unused;
}

/* Notes that a session is needed, for LOCK or (NULL) for nothing that lasts. False where there is no thread for the
 * keeper. The mutex is held. */
static bool need_session(const struct lock *lock)
{
    if (!session.lease_ms || (lock && session.only_for_ping)) {
        int64_t lease_ms = lock && lock->lease_ms > 0 ? lock->lease_ms : ZOOKEEPER_LEASE_MS;
        if (session.handle && session.lease_ms != lease_ms)
            end_session(); /* begun for a ping, with another time-out: it holds nothing */
        session.lease_ms = lease_ms;
        session.only_for_ping = !lock;
    }
    pthread_t thread;
    if (!keeper_runs && pthread_create(&thread, NULL, keep, NULL) == 0) {
        pthread_detach(thread);
        keeper_runs = true;
    }
    return keeper_runs;
}

/* ---- requests ------------------------------------------------------------------------------------------- */

/* One request and its answer. Two own it, who asks and the library: whoever lets go last frees it, so that neither
 * needs the other to be still there. */
struct request {
    int (*send)(zhandle_t *handle, struct request *request);
    char path[ZOOKEEPER_PATH_SIZE];
    const char *data; /* for a create; read only while it is sent */
    int mode;
    bool watch;
    bool repeatable; /* asking twice does no harm */

    int owners;
    pthread_cond_t answered;
    bool is_answered;
    int times_sent;
    int code;        /* the library's */
    int64_t session; /* by which it was sent; 0 if never */
    struct zookeeper_node node;
    struct zookeeper_children children;
};

static struct request *new_request(int (*send)(zhandle_t *handle, struct request *request), const char *path)
{
    struct request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->send = send;
    r->repeatable = true;
    r->owners = 1;
    snprintf(r->path, sizeof r->path, "%s", path);
    pthread_cond_init(&r->answered, &on_monotonic_clock);
    return r;
}

static void let_go(struct request *r)
{
    pthread_mutex_lock(&mutex);
    bool last = --r->owners == 0;
    pthread_mutex_unlock(&mutex);
    if (!last)
        return;
    pthread_cond_destroy(&r->answered);
    free(r->children.names);
    free(r);
}

static void settle(struct request *r, int code)
{
    pthread_mutex_lock(&mutex);
    r->code = code;
    r->is_answered = true;
    pthread_cond_signal(&r->answered);
    pthread_mutex_unlock(&mutex);
    let_go(r);
}

static void answer_plain(int code, const void *request)
{
    settle((struct request *)request, code);
}

static void answer_stat(int code, const struct Stat *stat, const void *request)
{
    struct request *r = (struct request *)request;
    if (code == ZOK)
        r->node.czxid = stat->czxid;
    settle(r, code);
}

static void answer_node(int code, const char *path, const struct Stat *stat, const void *request)
{
    struct request *r = (struct request *)request;
    if (code == ZOK) {
        r->node.czxid = stat->czxid;
        snprintf(r->node.path, sizeof r->node.path, "%s", path);
    }
    settle(r, code);
}

static void answer_data(int code, const char *data, int length, const struct Stat *stat, const void *request)
{
    (void)data;
    (void)length;
    (void)stat;
    settle((struct request *)request, code);
}

static void answer_sync(int code, const char *path, const void *request)
{
    (void)path;
    settle((struct request *)request, code);
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

static void answer_children(int code, const struct String_vector *names, const void *request)
{
    struct request *r = (struct request *)request;
    if (code == ZOK && !copy_names(names, &r->children))
        code = ZMARSHALLINGERROR;
    settle(r, code);
}

static int send_create(zhandle_t *handle, struct request *r)
{
    return zoo_acreate2(handle, r->path, r->data, (int)strlen(r->data), &ZOO_OPEN_ACL_UNSAFE, r->mode,
                        answer_node, r);
}

static int send_list(zhandle_t *handle, struct request *r)
{
    return zoo_aget_children(handle, r->path, 0, answer_children, r);
}

static int send_sync(zhandle_t *handle, struct request *r)
{
    return zoo_async(handle, r->path, answer_sync, r);
}

static int send_delete(zhandle_t *handle, struct request *r)
{
    return zoo_adelete(handle, r->path, -1, answer_plain, r);
}

static int send_find(zhandle_t *handle, struct request *r)
{
    return zoo_aexists(handle, r->path, 0, answer_stat, r);
}

/* Not `exists`, which would leave a watch for ever on a node that is gone. */
static int send_watch(zhandle_t *handle, struct request *r)
{
    return zoo_aget(handle, r->path, 1, answer_data, r);
}

/* Sends R once, in the session OF_SESSION or (0) in the one there is, and waits for the answer; the mutex is held. */
static int ask_once(struct request *r, int64_t of_session, int64_t until_us)
{
    while ((!session.connected || !session.handle) && (!of_session || of_session == session.id))
        if (!wait_until(&changed, until_us))
            return ZOPERATIONTIMEOUT;
    if (of_session && of_session != session.id)
        return ZSESSIONEXPIRED;
    r->session = session.id;
    r->is_answered = false;
    r->owners++;
    session.callers++;
    zhandle_t *handle = session.handle;
    pthread_mutex_unlock(&mutex);
    int code = r->send(handle, r);
    pthread_mutex_lock(&mutex);
    session.callers--;
    if (session.over && !session.callers)
        pthread_cond_broadcast(&changed);
    if (code != ZOK) {
        r->owners--;
        return code;
    }
    r->times_sent++;
    while (!r->is_answered)
        if (!wait_until(&r->answered, until_us))
            return ZOPERATIONTIMEOUT;
    return r->code;
}

/* Returns the library's code. */
static int ask(struct lock *lock, int64_t deadline_us, int64_t of_session, struct request *r)
{
    int64_t until_us = monotonic_us() + lock_command_ms(deadline_us) * 1000;
    int code = ZSYSTEMERROR;
    pthread_mutex_lock(&mutex);
    if (of_session || need_session(lock)) {
        code = ask_once(r, of_session, until_us);
        while (code == ZCONNECTIONLOSS && r->repeatable && monotonic_us() < until_us)
            code = ask_once(r, of_session, until_us);
    }
    pthread_mutex_unlock(&mutex);
    if (lock)
        lock->round_trips += (uint64_t)r->times_sent;
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
    if (lock)
        lock_fail(lock, status, "ZooKeeper, %s: %s", path, zerror(code));
    return status;
}

static enum lock_status no_memory(struct lock *lock)
{
    return translate(lock, ZMARSHALLINGERROR, "out of memory");
}

enum lock_status zookeeper_open(const struct lock_ops *ops, size_t size, struct lock **ret_lock)
{
    if (!*lock_config.zookeeper_connect)
        return LOCK_UNAVAILABLE;
    struct lock *lock = calloc(1, size);
    if (!lock)
        return LOCK_FAILED;
    pthread_once(&initialized, initialize);
    lock->ops = ops;
    *ret_lock = lock;
    return LOCK_OK;
}

void zookeeper_free(struct lock *lock)
{
    free(lock);
}

enum lock_status zookeeper_create(struct lock *lock, int64_t deadline_us, const char *path, const char *data,
                                  struct zookeeper_node *ret_node)
{
    struct request *r = new_request(send_create, path);
    if (!r)
        return no_memory(lock);
    r->data = data;
    r->mode = ZOO_EPHEMERAL_SEQUENTIAL;
    r->repeatable = false; /* or there would be two */
    enum lock_status status = translate(lock, ask(lock, deadline_us, 0, r), path);
    if (status == LOCK_OK)
        *ret_node = r->node;
    ret_node->session = r->session;
    let_go(r);
    return status;
}

static int create_parent(struct lock *lock, int64_t deadline_us, const char *path, int mode)
{
    struct request *r = new_request(send_create, path);
    if (!r)
        return ZMARSHALLINGERROR;
    r->data = "";
    r->mode = mode;
    int code = ask(lock, deadline_us, 0, r);
    let_go(r);
    if (code == ZUNIMPLEMENTED && mode == ZOO_CONTAINER)
        return create_parent(lock, deadline_us, path, ZOO_PERSISTENT);
    return code == ZNODEEXISTS ? ZOK : code;
}

enum lock_status zookeeper_create_parents(struct lock *lock, int64_t deadline_us, const char *path)
{
    int code = create_parent(lock, deadline_us, path, ZOO_CONTAINER);
    const char *last = strrchr(path, '/');
    if (code != ZNONODE || last == path)
        return translate(lock, code, path);
    char *above = strndup(path, (size_t)(last - path));
    if (!above)
        return no_memory(lock);
    enum lock_status status = zookeeper_create_parents(lock, deadline_us, above);
    free(above);
    if (status != LOCK_OK)
        return status;
    return translate(lock, create_parent(lock, deadline_us, path, ZOO_CONTAINER), path);
}

enum lock_status zookeeper_list(struct lock *lock, int64_t deadline_us, int64_t of_session, const char *path,
                                struct zookeeper_children *ret_children)
{
    struct request *r = new_request(send_list, path);
    if (!r)
        return no_memory(lock);
    enum lock_status status = translate(lock, ask(lock, deadline_us, of_session, r), path);
    if (status == LOCK_OK) {
        *ret_children = r->children;
        r->children.names = NULL;
    }
    let_go(r);
    return status;
}

enum lock_status zookeeper_list_latest(struct lock *lock, int64_t deadline_us, int64_t of_session,
                                       const char *path, struct zookeeper_children *ret_children)
{
    struct request *r = new_request(send_sync, path);
    if (!r)
        return no_memory(lock);
    enum lock_status status = translate(lock, ask(lock, deadline_us, of_session, r), path);
    let_go(r);
    return status == LOCK_OK ? zookeeper_list(lock, deadline_us, of_session, path, ret_children) : status;
}

enum lock_status zookeeper_delete(struct lock *lock, int64_t deadline_us, int64_t of_session,
                                  const char *path)
{
    struct request *r = new_request(send_delete, path);
    if (!r)
        return no_memory(lock);
    int code = ask(lock, deadline_us, of_session, r);
    if (code == ZNONODE && r->times_sent > 1) /* it was there when first asked, and the answer was lost */
        code = ZOK;
    let_go(r);
    return translate(lock, code, path);
}

enum lock_status zookeeper_find(struct lock *lock, int64_t deadline_us, int64_t of_session, const char *path,
                                int64_t *ret_czxid)
{
    struct request *r = new_request(send_find, path);
    if (!r)
        return no_memory(lock);
    enum lock_status status = translate(lock, ask(lock, deadline_us, of_session, r), path);
    if (status == LOCK_OK)
        *ret_czxid = r->node.czxid;
    let_go(r);
    return status;
}

/* ---- watches -------------------------------------------------------------------------------------------- */

static void add_waiter(struct waiter *w)
{
    pthread_cond_init(&w->woken, &on_monotonic_clock);
    pthread_mutex_lock(&mutex);
    w->next = waiters;
    waiters = w;
    pthread_mutex_unlock(&mutex);
}

static void remove_waiter(struct waiter *w)
{
    pthread_mutex_lock(&mutex);
    struct waiter **link = &waiters;
    while (*link != w)
        link = &(*link)->next;
    *link = w->next;
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&w->woken);
}

static enum lock_status wait_to_be_woken(struct lock *lock, struct waiter *w, int64_t deadline_us)
{
    enum lock_status status = LOCK_OK;
    pthread_mutex_lock(&mutex);
    while (!w->fired && w->session == session.id && status == LOCK_OK)
        if (!wait_until(&w->woken, deadline_us))
            status = session.connected ? LOCK_BUSY : LOCK_AWAY;
    if (w->fired)
        status = LOCK_OK;
    else if (w->session != session.id)
        status = LOCK_LOST;
    pthread_mutex_unlock(&mutex);
    lock->wake_ups += w->fired;
    return status == LOCK_OK ? status : lock_fail(lock, status, "ZooKeeper, waiting for %s", w->path);
}

enum lock_status zookeeper_await(struct lock *lock, int64_t deadline_us, int64_t of_session, const char *path,
                                 enum zookeeper_gone gone)
{
    struct waiter waiter = {.session = of_session, .path = path};
    struct request *r = new_request(send_watch, path);
    if (!r)
        return no_memory(lock);
    add_waiter(&waiter);
    int code = ask(lock, deadline_us, of_session, r);
    enum lock_status status;
    if (code == ZNONODE && gone == GONE_IS_A_CHANGE)
        status = LOCK_OK;
    else if (code == ZNONODE || code == ZOK)
        status = wait_to_be_woken(lock, &waiter, deadline_us);
    else
        status = translate(lock, code, path);
    remove_waiter(&waiter);
    let_go(r);
    return status;
}

/* ---- what is left behind, and what others want to know ------------------------------------------------------ */

void zookeeper_abandon(int64_t of_session, const char *path)
{
    struct abandoned *a = malloc(sizeof *a);
    if (!a || !of_session) { /* never sent; or out of memory: the node stays until its session ends */
        free(a);
        return;
    }
    a->session = of_session;
    snprintf(a->path, sizeof a->path, "%s", path);
    pthread_mutex_lock(&mutex);
    a->next = abandoned;
    abandoned = a;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

uint64_t zookeeper_sessions_lost(void)
{
    pthread_mutex_lock(&mutex);
    uint64_t lost = session.lost;
    pthread_mutex_unlock(&mutex);
    return lost;
}

void zookeeper_break_session(void)
{
    pthread_mutex_lock(&mutex);
    if (session.id) {
        end_session();
        int64_t until_us = monotonic_us() + BREAK_MS * 1000;
        while (!session.id && wait_until(&changed, until_us)) {
        }
    }
    pthread_mutex_unlock(&mutex);
}

static enum lock_status ping(int64_t deadline_us, char *ret_error, size_t size)
{
    int code = ZMARSHALLINGERROR;
    if (!*lock_config.zookeeper_connect)
        return LOCK_UNAVAILABLE;
    pthread_once(&initialized, initialize);
    struct request *r = new_request(send_find, "/");
    if (r) {
        do /* again where the session has just been replaced */
            code = ask(NULL, deadline_us, 0, r);
        while ((code == ZSESSIONEXPIRED || code == ZCLOSING) && monotonic_us() < deadline_us);
        let_go(r);
    }
    if (code == ZOK || code == ZNONODE) /* no node: what the address has after a slash was not made yet */
        return LOCK_OK;
    snprintf(ret_error, size, "ZooKeeper: %s", zerror(code));
    return translate(NULL, code, "/") == LOCK_REFUSED ? LOCK_REFUSED : LOCK_AWAY;
}

const struct lock_server zookeeper_server = {
    .name = "zookeeper", .setting = "ZOOKEEPER_CONNECT", .ping = ping};
