/* The process's ZooKeeper session, for the files of lock/zookeeper/client/ only. */
#ifndef OVERSELL_LOCK_ZOOKEEPER_CLIENT_SESSION_IMPL_H
#define OVERSELL_LOCK_ZOOKEEPER_CLIENT_SESSION_IMPL_H

#include "lock/zookeeper/client/session.h"

#include <pthread.h>
#include <zookeeper/zookeeper.h>

/* ---- the library (lock/zookeeper/client/io.c) ------------------------------------------------------------------------------ */

/* Only for the thread that keeps the session. Opens the library's handle with a session timeout of LEASE_MS. ON_EVENT gets
 * the session's events, with the library locked. False if that fails now. There is one handle at a time. */
bool zookeeper_io_open(watcher_fn on_event, int lease_ms);
void zookeeper_io_close(void);

/* Lock and unlock the library's mutex, which callbacks hold as well. Take it before any other mutex, and do not wait while you
 * hold it. Returns the handle, or NULL if there is none. */
zhandle_t *zookeeper_io_lock(void);
void zookeeper_io_unlock(void);

/* Changes the server, if there are several and this one has sent nothing since SINCE_US (monotonic). Requests in progress end
 * with ZCONNECTIONLOSS, and the session continues on the next server. */
void zookeeper_io_doubt(int64_t since_us);

/* ---- the session (session.c) --------------------------------------------------------------------------------- */

/* A thread's stay inside the library. */
struct zookeeper_visit {
    zhandle_t *handle;
    int64_t session;
};
/* Waits until UNTIL for a connection of OF_SESSION or (0) of whichever session there is, which it begins if need be, as
 * LOCK wishes, or (NULL) for nothing that lasts. ZOK, or the library's code for why not. */
int zookeeper_enter(const struct lock *lock, int64_t of_session, int64_t until_us,
                    struct zookeeper_visit *ret_visit);
/* Ends the stay. Do not wait between zookeeper_enter and this call. */
void zookeeper_exit(const struct zookeeper_visit *visit);

/* A thread that waits for a watch to fire. */
struct zookeeper_waiter {
    struct zookeeper_waiter *next;
    pthread_cond_t woken;
    int64_t session;
    const char *path;
    bool fired;
    bool told; /* on_change was called */
    /* Called once, with the library locked, when this process sends the request to delete the node or when the watch fires,
     * whichever is first. May send, must not wait. NULL for nothing. */
    void (*on_change)(struct zookeeper_waiter *waiter, zhandle_t *handle);
    void *context;
};
/* The caller has set SESSION, PATH, ON_CHANGE and CONTEXT. Add the waiter before you set the watch, and always remove it. */
void zookeeper_add_waiter(struct zookeeper_waiter *waiter);
void zookeeper_remove_waiter(struct zookeeper_waiter *waiter);
/* Call this in a visit, after you have sent the request to delete PATH: the waiters for that node send their requests. The
 * server executes the requests of a session in the order sent, so the answers show the state after the delete. */
void zookeeper_tell_waiters(const struct zookeeper_visit *visit, const char *path);
/* LOCK_OK: it has fired. LOCK_LOST: the session has ended. LOCK_TIMED_OUT, LOCK_AWAY (not connected): UNTIL has come. */
enum lock_status zookeeper_wait(struct zookeeper_waiter *waiter, int64_t until_us);

#endif
