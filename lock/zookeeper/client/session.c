/* The process's session with ZooKeeper: opened when first needed, replaced when it is lost.
 *
 * The library calls on_event when the session changes or a watch fires. A thread, the keeper, begins the session, closes
 * it, begins the next, and clears away what others had to leave behind.
 *
 * One mutex guards everything here. It is taken inside the library's callbacks, so nobody who holds it locks the library
 * (lock/zookeeper/client/io.c); the requests' own mutex comes last. */
#include "base/clock.h"
#include "lock/zookeeper/client/session_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACE_US = 200000 }; /* between two of the keeper's attempts at the same thing */

/* Nodes that the keeper is to delete: all whose path begins with PATH. */
struct abandoned {
    struct abandoned *next;
    int64_t session;
    char path[ZOOKEEPER_PATH_SIZE];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed =
    PTHREAD_COND_INITIALIZER; /* the session, or what the keeper is to do; seldom */
static struct zookeeper_waiter *waiters;
static struct abandoned *abandoned;

static struct {
    bool keeper_runs;
    bool open;          /* there is a handle: the keeper's to set */
    int64_t id;         /* the server's number of the session; 0 while there is none */
    bool connected;     /* as we were told last */
    bool over;          /* the keeper is to close the handle and open another */
    int64_t lease_ms;   /* its timeout, as asked for; 0 while nobody has needed a session */
    bool only_for_ping; /* nobody who has a wish about the timeout has used it yet */
    uint64_t lost;
} session;

/* ---- what the library tells us ------------------------------------------------------------------------------ */

/* The mutex is held. Requests that are under way are answered when the keeper closes the handle. */
static void end_session(void)
{
    session.lost += session.id && !session.only_for_ping;
    session.id = 0;
    session.connected = false;
    session.over = true;
    for (struct zookeeper_waiter *w = waiters; w; w = w->next)
        pthread_cond_signal(&w->woken);
    pthread_cond_broadcast(&changed);
}

static void on_session_event(zhandle_t *handle, int state)
{
    if (session.over) /* its last words */
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

static void tell(struct zookeeper_waiter *w, zhandle_t *handle)
{
    if (!w->told && w->on_change)
        w->on_change(w, handle);
    w->told = true;
}

static void on_node_event(zhandle_t *handle, const char *path)
{
    for (struct zookeeper_waiter *w = waiters; w; w = w->next) {
        if (w->session != session.id || strcmp(w->path, path) != 0)
            continue;
        tell(w, handle);
        w->fired = true;
        pthread_cond_signal(&w->woken);
    }
}

static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)context;
    pthread_mutex_lock(&mutex);
    if (type == ZOO_SESSION_EVENT)
        on_session_event(handle, state);
    else
        on_node_event(handle, path);
    pthread_mutex_unlock(&mutex);
}

/* ---- the keeper: with the mutex held, but for where it calls the library ------------------------------------- */

static void begin_session(void)
{
    int lease_ms = session.lease_ms < INT32_MAX ? (int)session.lease_ms : INT32_MAX;
    session.over = false;
    pthread_mutex_unlock(&mutex);
    bool open = zookeeper_io_open(on_event, lease_ms);
    pthread_mutex_lock(&mutex);
    session.open = open; /* else it is tried again */
    pthread_cond_broadcast(&changed);
}

static void close_session(void)
{
    session.open = false;
    pthread_mutex_unlock(&mutex);
    zookeeper_io_close();
    pthread_mutex_lock(&mutex);
}

/* Deletes what begins with PATH, of a session that may have ended. True when nothing is left to be done. */
static bool clear_away(int64_t of_session, const char *path)
{
    char parent[ZOOKEEPER_PATH_SIZE];
    char found[ZOOKEEPER_PATH_SIZE];
    struct zookeeper_children children = {0};
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    enum lock_status status = zookeeper_list_latest(NULL, INT64_MAX, of_session, parent, &children);
    for (int i = 0; status == LOCK_OK && i < children.count; i++) {
        int length = snprintf(found, sizeof found, "%s/%s", parent, children.names[i]);
        if (length < (int)sizeof found && strncmp(found, path, strlen(path)) == 0)
            status = zookeeper_delete(NULL, INT64_MAX, of_session, found);
    }
    free(children.names);
    return status != LOCK_AWAY && status != LOCK_FAILED; /* a server that refuses will do so again */
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
    int64_t begin_us = 0; /* not before */
    int64_t clear_us = 0;
    pthread_mutex_lock(&mutex);
    while (true) {
        int64_t now_us = monotonic_us();
        if (session.open && session.over) {
            close_session();
        } else if (!session.open && now_us >= begin_us) {
            begin_us = now_us + PACE_US;
            begin_session();
        } else if (abandoned && now_us >= clear_us) {
            if (!clear_one())
                clear_us = monotonic_us() + PACE_US;
        } else {
            int64_t until_us = abandoned ? clear_us : INT64_MAX;
            if (!session.open && begin_us < until_us)
                until_us = begin_us;
            (void)wait_until(&changed, &mutex, until_us);
        }
    }
    return unused;
}

void zookeeper_abandon(int64_t of_session, const char *path)
{
    if (!of_session) /* never sent */
        return;
    struct abandoned *a = malloc(sizeof *a);
    pthread_mutex_lock(&mutex);
    if (a) {
        a->session = of_session;
        snprintf(a->path, sizeof a->path, "%s", path);
        a->next = abandoned;
        abandoned = a;
        pthread_cond_broadcast(&changed);
    } else if (of_session == session.id) {
        end_session(); /* or, while this process lives, it would be in everybody's way */
    }
    pthread_mutex_unlock(&mutex);
}

/* ---- requests come in here ---------------------------------------------------------------------------------- */

/* Says that a session is needed. False where there is no thread for the keeper. The mutex is held. */
static bool need_session(const struct lock *lock)
{
    if (!session.lease_ms || (lock && session.only_for_ping)) {
        int64_t lease_ms = lock && lock->lease_ms > 0 ? lock->lease_ms : ZOOKEEPER_LEASE_MS;
        if (lease_ms < ZOOKEEPER_LEAST_MS)
            lease_ms = ZOOKEEPER_LEAST_MS;
        if (session.open && session.lease_ms != lease_ms)
            end_session(); /* begun for a ping, with another timeout; it holds nothing */
        session.lease_ms = lease_ms;
        session.only_for_ping = !lock;
    }
    pthread_t thread;
    if (!session.keeper_runs && pthread_create(&thread, NULL, keep, NULL) == 0) {
        pthread_detach(thread);
        session.keeper_runs = true;
    }
    return session.keeper_runs;
}

/* Waits for a connection. */
static int await_connection(int64_t of_session, int64_t until_us)
{
    while (!of_session || of_session == session.id) {
        if (session.connected)
            return ZOK;
        if (!wait_until(&changed, &mutex, until_us))
            return ZOPERATIONTIMEOUT;
    }
    return ZSESSIONEXPIRED;
}

int zookeeper_enter(const struct lock *lock, int64_t of_session, int64_t until_us,
                    struct zookeeper_visit *ret_visit)
{
    int code = ZSYSTEMERROR;
    while (true) {
        pthread_mutex_lock(&mutex);
        if (of_session || need_session(lock))
            code = await_connection(of_session, until_us);
        pthread_mutex_unlock(&mutex);
        if (code != ZOK)
            return code;
        ret_visit->handle = zookeeper_io_lock();
        pthread_mutex_lock(&mutex);
        ret_visit->session = session.id;
        bool still = session.connected && (!of_session || of_session == session.id);
        pthread_mutex_unlock(&mutex);
        if (still && ret_visit->handle)
            return ZOK;
        zookeeper_io_unlock();
    }
}

void zookeeper_exit(const struct zookeeper_visit *visit)
{
    if (zoo_state(visit->handle) !=
        ZOO_CONNECTED_STATE) { /* what it learns by sending, the library does not tell */
        pthread_mutex_lock(&mutex);
        session.connected = false;
        pthread_mutex_unlock(&mutex);
    }
    zookeeper_io_unlock();
}

/* ---- waiters ------------------------------------------------------------------------------------------------ */

void zookeeper_tell_waiters(const struct zookeeper_visit *visit, const char *path)
{
    pthread_mutex_lock(&mutex);
    for (struct zookeeper_waiter *w = waiters; w; w = w->next)
        if (w->session == visit->session && w->session == session.id && strcmp(w->path, path) == 0)
            tell(w, visit->handle);
    pthread_mutex_unlock(&mutex);
}

void zookeeper_add_waiter(struct zookeeper_waiter *waiter)
{
    pthread_cond_init(&waiter->woken, NULL);
    pthread_mutex_lock(&mutex);
    waiter->next = waiters;
    waiters = waiter;
    pthread_mutex_unlock(&mutex);
}

void zookeeper_remove_waiter(struct zookeeper_waiter *waiter)
{
    pthread_mutex_lock(&mutex);
    struct zookeeper_waiter **link = &waiters;
    while (*link != waiter)
        link = &(*link)->next;
    *link = waiter->next;
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&waiter->woken);
}

enum lock_status zookeeper_wait(struct zookeeper_waiter *waiter, int64_t until_us)
{
    enum lock_status status = LOCK_OK;
    pthread_mutex_lock(&mutex);
    while (!waiter->fired && waiter->session == session.id && status == LOCK_OK)
        if (!wait_until(&waiter->woken, &mutex, until_us))
            status = session.connected ? LOCK_TIMED_OUT : LOCK_AWAY;
    if (waiter->fired)
        status = LOCK_OK;
    else if (waiter->session != session.id)
        status = LOCK_LOST;
    pthread_mutex_unlock(&mutex);
    return status;
}

/* ---- for everybody ------------------------------------------------------------------------------------------ */

uint64_t zookeeper_sessions_lost(void)
{
    pthread_mutex_lock(&mutex);
    uint64_t lost = session.lost;
    pthread_mutex_unlock(&mutex);
    return lost;
}

static enum lock_status ping(int64_t deadline_us, char *ret_error, size_t size)
{
    int64_t czxid;
    enum lock_status status = LOCK_LOST;
    for (int tries = 0; tries < 2 && status == LOCK_LOST;
         tries++) /* once more where the session was replaced */
        status = zookeeper_find(NULL, deadline_us, 0, "/", &czxid);
    if (status == LOCK_OK ||
        status == LOCK_LOST) /* no root: the path in ZOOKEEPER_CONNECT is still to be made */
        return LOCK_OK;
    snprintf(ret_error, size, "ZooKeeper: %s", lock_status_name(status));
    return status;
}

const struct lock_server zookeeper_server = {.name = "zookeeper",
                                             .setting = "ZOOKEEPER_CONNECT",
                                             .address = &lock_config.zookeeper_connect,
                                             .ping = ping,
                                             .sessions_lost = zookeeper_sessions_lost};
