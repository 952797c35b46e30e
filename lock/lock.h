/* Mutual exclusion with a name and a deadline: one interface for a mutex in the process and for a lock kept in
 * PostgreSQL, Redis, ZooKeeper or etcd.
 *
 * A struct lock is one contender's handle: one thread uses it at a time, and holds one key at a time (the same
 * key again where the lock is reentrant). Handles of different threads share what they must inside the lock. */
#ifndef OVERSELL_LOCK_LOCK_H
#define OVERSELL_LOCK_LOCK_H

#include "steps.h"

#include <stdbool.h>
#include <stdint.h>

enum lock_status {
    LOCK_OK,
    LOCK_BUSY,        /* not got before the deadline */
    LOCK_LOST,        /* it was ours and is not any more: the lease ended, or somebody took it */
    LOCK_NOT_OWNER,   /* the key is held, and not by this grant */
    LOCK_AWAY,        /* the lock's server is not reachable, or has just failed */
    LOCK_REFUSED,     /* the server is there and will not serve: password, a value of a foreign type, … */
    LOCK_UNAVAILABLE, /* no server of this kind is configured */
    LOCK_FAILED,      /* out of memory, or a bug; lock->error tells */
};

/* What may end a lock under a holder who has done nothing wrong. */
enum lock_peril {
    PERIL_PAUSE = 1 << 0,      /* the process sleeps for longer than the lease */
    PERIL_DISCONNECT = 1 << 1, /* its connection or session breaks */
    PERIL_CLOCK = 1 << 2,      /* a clock jumps, here or on the server */
    PERIL_RESTART = 1 << 3,    /* the lock's server restarts without its memory */
};

/* A lock's declared properties: shown to users, and asserted one by one in the contract tests. */
struct lock_properties {
    const char *mechanism;  /* in a few words */
    bool reentrant;         /* its holder may take it again */
    bool blocking;          /* a waiter is woken; otherwise it polls */
    bool fair;              /* first come, first served */
    bool leased;            /* ends by itself after a time */
    bool renewed;           /* a watchdog prolongs the lease while its holder lives */
    bool fenced;            /* a grant carries a token that only grows */
    bool survives_crash;    /* a holder's death frees it */
    bool survives_minority; /* of its servers, any minority may die */
    unsigned perils;        /* enum lock_peril, or-ed */
};

/* One acquisition. Filled by acquire, handed back to release. */
struct lock_grant {
    char key[65];
    char token[65];       /* who holds it, as the server knows it */
    int64_t fence;        /* the fencing token; 0 where the lock has none */
    int64_t lease_end_us; /* monotonic; INT64_MAX where it has no end */
    void *impl;           /* the lock's own */
};

struct lock;

struct lock_ops {
    const char *name;   /* the strategy's name that uses it */
    const char *server; /* what must be reachable: "redis", …; NULL for the process itself */
    struct lock_properties properties;
    /* Makes a handle for the lock OPS; connects when first used, not here. */
    enum lock_status (*open)(const struct lock_ops *ops, struct lock **ret_lock);
    /* Waits until DEADLINE (monotonic_us) at most; a deadline in the past means one try. Tells the lock's observer
     * when it starts to wait. On any status but LOCK_OK nothing is held and *ret_grant is undefined. */
    enum lock_status (*acquire)(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant);
    /* LOCK_OK, or LOCK_LOST if it had ended before; either way the grant is spent. */
    enum lock_status (*release)(struct lock *lock, struct lock_grant *grant);
    /* Asks whether the grant still holds: LOCK_OK, LOCK_LOST, or that the question got no answer. */
    enum lock_status (*still_held)(struct lock *lock, const struct lock_grant *grant);
    /* Frees the handle; what it still holds is not released but left to its end. */
    void (*close)(struct lock *lock);
};

/* The head of every lock's own struct. */
struct lock {
    const struct lock_ops *ops;
    struct observer *observer; /* the caller's, or NULL: told of STEP_WAIT and the lock's own finer steps */
    int64_t lease_ms;          /* the caller's: TTL of what it acquires next, where the lock is leased */
    char error[200];           /* what went wrong last, for the log */
};

/* All locks, by the name of the strategy that uses them; ended by NULL. */
extern const struct lock_ops *const all_locks[];

extern const struct lock_ops process_mutex;
extern const struct lock_ops process_mutex_per_product;
extern const struct lock_ops process_mutex_wrong_object;
extern const struct lock_ops process_mutex_reentrant;

#endif
