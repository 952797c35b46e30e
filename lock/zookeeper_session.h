/* The process's session, as the requests and the watches need it: for lock/zookeeper*.c only. */
#ifndef OVERSELL_LOCK_ZOOKEEPER_SESSION_H
#define OVERSELL_LOCK_ZOOKEEPER_SESSION_H

#include "lock/zookeeper.h"

#include <pthread.h>
#include <zookeeper/zookeeper.h>

/* A thread's stay inside the library, during which the handle is not closed. */
struct zookeeper_visit {
    zhandle_t *handle;
    int64_t session;
};
/* Waits until UNTIL for a connection of OF_SESSION or (0) of whichever session there is, which it begins if need be, as
 * LOCK wishes, or (NULL) for nothing that lasts. ZOK, or the library's code for why not. */
int zookeeper_enter(const struct lock *lock, int64_t of_session, int64_t until_us,
                    struct zookeeper_visit *ret_visit);
/* To be called soon: between the two is nothing that waits. */
void zookeeper_exit(void);

/* For the keeper, before it closes a handle: waits until the library has answered everything, UNTIL at most. */
void zookeeper_await_answers(int64_t until_us);
/* And when the handle is closed: answers what the library has left unanswered. */
void zookeeper_settle_all(void);

/* Somebody who waits for a watch to fire. */
struct zookeeper_waiter {
    struct zookeeper_waiter *next;
    pthread_cond_t woken;
    int64_t session;
    const char *path;
    bool fired;
};
/* SESSION and PATH are filled in. To be added before the watch is set, and removed in any case. */
void zookeeper_add_waiter(struct zookeeper_waiter *waiter);
void zookeeper_remove_waiter(struct zookeeper_waiter *waiter);
/* LOCK_OK: it has fired. LOCK_LOST: the session has ended. LOCK_BUSY, LOCK_AWAY (not connected): UNTIL has come. */
enum lock_status zookeeper_wait(struct zookeeper_waiter *waiter, int64_t until_us);

#endif
