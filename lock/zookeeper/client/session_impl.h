/* The process's ZooKeeper session, for the files of lock/zookeeper/client/ only. */
#ifndef OVERSELL_LOCK_ZOOKEEPER_CLIENT_SESSION_IMPL_H
#define OVERSELL_LOCK_ZOOKEEPER_CLIENT_SESSION_IMPL_H

#include "lock/zookeeper/client/session.h"

#include <pthread.h>
#include <zookeeper/zookeeper.h>

/* ---- the library (lock/zookeeper/client/io.c) ------------------------------------------------------------------------------ */

/* For the keeper. Begins a handle, whose session has this time-out, in milliseconds, and is told of in ON_EVENT, with
 * the library locked; false where that cannot be done now. There is one at a time. */
bool zookeeper_io_open(watcher_fn on_event, int lease_ms);
void zookeeper_io_close(void);

/* Between these two nobody else calls the library, and nothing waits: it is the mutex that callbacks are called with, so
 * taken before any other. Returns the handle, or NULL where there is none. */
zhandle_t *zookeeper_io_lock(void);
void zookeeper_io_unlock(void);

/* Leaves a server among several that has said nothing since then (monotonic): requests under way end with
 * ZCONNECTIONLOSS, and the session goes on with the next. */
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
/* To be called soon: between the two is nothing that waits. */
void zookeeper_exit(const struct zookeeper_visit *visit);

/* Somebody who waits for a watch to fire. */
struct zookeeper_waiter {
    struct zookeeper_waiter *next;
    pthread_cond_t woken;
    int64_t session;
    const char *path;
    bool fired;
    /* Called once, when it fires, with the library locked: may send, must not wait. NULL for nothing. */
    void (*on_fired)(struct zookeeper_waiter *waiter, zhandle_t *handle);
    void *context;
};
/* SESSION, PATH, ON_FIRED and CONTEXT are filled in. To be added before the watch is set, and removed in any case. */
void zookeeper_add_waiter(struct zookeeper_waiter *waiter);
void zookeeper_remove_waiter(struct zookeeper_waiter *waiter);
/* LOCK_OK: it has fired. LOCK_LOST: the session has ended. LOCK_TIMED_OUT, LOCK_AWAY (not connected): UNTIL has come. */
enum lock_status zookeeper_wait(struct zookeeper_waiter *waiter, int64_t until_us);

#endif
