/* Takes and releases a named lock: one interface for a mutex of this process and for locks in PostgreSQL, Redis,
 * ZooKeeper and etcd. lock/registry.h lists the locks, lock/lock_driver.h is for implementing one.
 *
 * A struct lock is the handle of one contender. One thread uses it at a time, and it holds one key at a time (the same
 * key again where the lock is reentrant). Handles of different threads may name the same key: that is what they are for. */
#ifndef OVERSELL_LOCK_LOCK_H
#define OVERSELL_LOCK_LOCK_H

#include "base/observer.h"

#include <stdbool.h>
#include <stdint.h>

struct lock_driver; /* a kind of lock: see lock/lock_driver.h */

enum lock_status {
    LOCK_OK,
    LOCK_TIMED_OUT,   /* somebody else held the lock until the deadline */
    LOCK_LOST,        /* the grant has ended: its lease ran out, or somebody took the lock */
    LOCK_NOT_OWNER,   /* this grant does not hold the key, which may be held by another */
    LOCK_AWAY,        /* the lock's server cannot be reached, or failed during the request */
    LOCK_REFUSED,     /* the server answers and refuses: a wrong password, a value of another type, … */
    LOCK_UNAVAILABLE, /* no server of this kind is configured */
    LOCK_FAILED,      /* out of memory, or a bug: lock->error has the reason */
};

/* "busy", "away", …: static storage. Any thread may call. */
const char *lock_status_name(enum lock_status status);

enum { LOCK_NAME_MAX = 64 };
/* May a key be called NAME? 1 to 64 of A-Z a-z 0-9 : . _ -, but neither "." nor "..", which are paths in ZooKeeper. */
bool lock_is_name(const char *name);

/* One acquisition: lock_acquire fills it in, lock_release takes it back. The caller's memory, no resources. */
struct lock_grant {
    char key[LOCK_NAME_MAX + 1];
    char token[100];      /* identifies the holder on the lock's server */
    int64_t fence;        /* the fencing token, which only grows; 0 where the lock has none */
    int64_t lease_end_us; /* monotonic_us(), as first granted; INT64_MAX where the lock has no lease */
    void *impl;           /* the implementation's own */
};

/* The head of every implementation's handle. */
struct lock {
    const struct lock_driver *driver;
    /* Set by the caller before it acquires: */
    struct observer *observer; /* called with STEP_WAIT and the lock's own steps; NULL: nobody */
    int64_t lease_ms;          /* how long the next lease lasts, where the lock has leases */
    bool lease_ends;           /* never renew the lease, even where the driver says so … */
    bool lease_renewed;        /* … or renew it even where the driver does not */
    /* Counted by the lock since it was opened: */
    uint64_t round_trips; /* requests to the lock's server */
    uint64_t wake_ups;    /* how often a waiter was woken, even if it did not get the lock then */
    char error[200];      /* why the last call failed, for the log */
};

/* Makes a handle in *RET_LOCK, which the caller closes. Connects at the first acquisition, not here. LOCK_UNAVAILABLE:
 * the lock's server is not configured; LOCK_FAILED: out of memory. Any thread may call. */
enum lock_status lock_open(const struct lock_driver *driver, struct lock **ret_lock);
/* Waits for KEY until DEADLINE (monotonic_us()). With a deadline that has passed it tries once; INT64_MAX: waits for ever.
 * LOCK_OK: *RET_GRANT holds the key. If the lock renews leases, a thread renews this one after each third of its
 * duration. Any other status: the caller holds nothing. If the server did not answer, it may keep the key until the lease
 * ends. */
enum lock_status lock_acquire(struct lock *lock, const char *key, int64_t deadline_us,
                              struct lock_grant *ret_grant);
/* Stops the renewal and releases GRANT, which cannot be used again. LOCK_LOST: the grant had ended before. Any other
 * error: the grant could not be released, and stays until its lease ends. Takes seconds at most, also while the server is
 * away. */
enum lock_status lock_release(struct lock *lock, struct lock_grant *grant);
/* Asks the server whether GRANT still holds its key: LOCK_OK, LOCK_LOST, or why there is no answer. */
enum lock_status lock_still_held(struct lock *lock, const struct lock_grant *grant);
/* Stops all renewals of this handle and frees it. A grant that it still has ends by itself. LOCK may be NULL. */
void lock_close(struct lock *lock);

struct lock_server; /* a kind of server that locks live on: see lock/lock_driver.h */
/* Asks SERVER whether it answers before DEADLINE: LOCK_OK; LOCK_UNAVAILABLE: none is configured; else RET_ERROR has the
 * reason. Any thread may call. */
enum lock_status lock_ping(const struct lock_server *server, int64_t deadline_us, char *ret_error,
                           size_t size);

#endif
