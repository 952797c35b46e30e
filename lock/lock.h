/* Mutual exclusion with a name and a deadline: one interface for a mutex in the process and for a lock kept in
 * PostgreSQL, Redis, ZooKeeper or etcd.
 *
 * A struct lock is one contender's handle: one thread uses it at a time, and holds one key at a time (the same
 * key again where the lock is reentrant). Handles of different threads share what they must inside the lock. */
#ifndef OVERSELL_LOCK_LOCK_H
#define OVERSELL_LOCK_LOCK_H

#include "base/clock.h"
#include "base/observer.h"

#include <stdbool.h>
#include <stddef.h>
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

/* Static storage: "busy", "away", … */
const char *lock_status_name(enum lock_status status);

/* Where the servers are; "" for none. Set once by lock_configure, before the first lock is opened. */
struct lock_config {
    const char *database_url;      /* LOCK_DATABASE_URL */
    const char *redis_url;         /* redis://…, rediss://… or unix://… */
    const char *redlock_urls;      /* the same, comma-separated */
    const char *zookeeper_connect; /* HOST:PORT,… */
    const char *etcd_endpoints;    /* http://HOST:PORT,… */
    const char *prefix;            /* what keys and paths begin with: "oversell" */
    /* Each product is a shop, as in a class, where every learner has one: what is one mutex for the whole shop is one for
     * each product then, so that no learner waits for another's. */
    bool separate_shops;
};

/* The strings are kept, not copied. */
void lock_configure(const struct lock_config *config);
/* For programs without flags of their own for it: reads the variables that the service reads. False where one of them
 * is not valid, with the reason in words in RET_ERROR. */
bool lock_configure_from_environment(char *ret_error, size_t size);

enum {
    LOCK_REDLOCK_MOST = 15,
    LOCK_ETCD_MOST = 16
}; /* servers that REDLOCK_URLS and ETCD_ENDPOINTS may name */
/* How many servers LIST names, which are separated by commas. */
int lock_count_servers(const char *list);

#define LOCK_PREFIX_RULE "1 to 32 of A-Z a-z 0-9 . _ -, the first of them no ."
/* Is PREFIX as LOCK_PREFIX_RULE says? A longer one would be cut off inside the names of keys. */
bool lock_is_prefix(const char *prefix);

enum { LOCK_NAME_MAX = 64 };
/* May a lock be called NAME? 1 to 64 of A-Z a-z 0-9 : . _ -, but neither "." nor "..", which are paths in ZooKeeper. */
bool lock_is_name(const char *name);

/* A kind of server that locks live on. */
struct lock_server {
    const char *name;    /* "redis", …: what a client is told is away */
    const char *setting; /* the environment variable that names it */
    /* Does it answer before DEADLINE? LOCK_OK, or why not, in words, in RET_ERROR. Any thread may call. */
    enum lock_status (*ping)(int64_t deadline_us, char *ret_error, size_t size);
    /* How many sessions this process has lost so far; NULL where there are none. Any thread may call. */
    uint64_t (*sessions_lost)(void);
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
    bool renewed;           /* prolonged while its holder lives, unless the caller says otherwise */
    bool fenced;            /* a grant carries a token that only grows */
    bool survives_crash;    /* a holder's death frees it */
    bool survives_minority; /* of its servers, any minority may die */
    unsigned perils;        /* enum lock_peril, or-ed */
};

/* One acquisition. Filled by acquire, handed back to release. */
struct lock_grant {
    char key[LOCK_NAME_MAX + 1];
    char token[100];      /* who holds it, as the server knows it */
    int64_t fence;        /* the fencing token; 0 where the lock has none */
    int64_t lease_end_us; /* monotonic, as first granted; INT64_MAX where it has no end */
    void *impl;           /* the lock's own */
};

struct lock;

/* A lock's functions. Callers use lock_acquire and lock_release below for two of them. */
struct lock_driver {
    const char *name;                 /* the strategy's name that uses it */
    const struct lock_server *server; /* what must be reachable; NULL for the process itself */
    struct lock_properties properties;
    /* Makes a handle for the lock OPS; connects when first used, not here. */
    enum lock_status (*open)(const struct lock_driver *driver, struct lock **ret_lock);
    /* Waits until DEADLINE (monotonic_us) at most: one in the past means one try, INT64_MAX until it comes. Tells
     * the lock's observer when it starts to wait; a polling lock at every try that found it taken. On any status but
     * LOCK_OK nothing is held (as far as a server that does not answer lets us know) and *ret_grant is undefined; who
     * waits in a queue has the number of its place there meanwhile. Who loses its place while it waits begins anew:
     * never LOCK_LOST. */
    enum lock_status (*acquire)(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant);
    /* LOCK_OK, or LOCK_LOST if it had ended before, or why it is left to its end; in any case the grant is spent. A spent
     * one is LOCK_LOST or LOCK_NOT_OWNER. Bounded. */
    enum lock_status (*release)(struct lock *lock, struct lock_grant *grant);
    /* Asks whether the grant still holds: LOCK_OK, LOCK_LOST, or that the question got no answer. */
    enum lock_status (*still_held)(struct lock *lock, const struct lock_grant *grant);
    /* Prolongs the lease to lock->lease_ms from now; NULL where there is no lease. May be called with another handle
     * than the grant's, by another thread, with a copy of the grant whose impl is NULL. */
    enum lock_status (*renew)(struct lock *lock, const struct lock_grant *grant);
    /* For the explorer: ends the lease now, as time would; also of a grant that its holder has not been given yet, or of
     * its place in the queue. By any handle, as renew. LOCK_LOST: it has none, or none any more. NULL: what renews can shorten, or what releases will do. */
    enum lock_status (*expire)(struct lock *lock, const struct lock_grant *grant);
    /* Makes the next token of KEY greater than FENCE, after the server has lost its counter; NULL where it cannot. */
    enum lock_status (*raise_fence)(struct lock *lock, const char *key, int64_t fence);
    /* Frees the handle; what it still holds is not released but left to its end. LOCK may be NULL. */
    void (*close)(struct lock *lock);
};

/* The head of every lock's own struct. */
struct lock {
    const struct lock_driver *driver;
    struct observer *observer; /* the caller's, or NULL: told of STEP_WAIT and the lock's own finer steps */
    int64_t lease_ms;          /* the caller's: TTL of what it acquires next, where the lock is leased */
    bool lease_ends;    /* the caller's: let the lease end by itself even where the lock is renewed … */
    bool lease_renewed; /* … or renew it even where it is not */
    unsigned
        process; /* the explorer's, 0 otherwise: handles of different numbers are strangers, as in two processes */
    uint64_t round_trips; /* requests to its server so far */
    uint64_t wake_ups;    /* how often a waiter was woken so far, in vain or not */
    char error[200];      /* what went wrong last, for the log */
};

/* Makes a handle; LOCK_UNAVAILABLE where its server is not configured. */
enum lock_status lock_open(const struct lock_driver *driver, struct lock **ret_lock);
/* As driver->acquire; then a watchdog prolongs the lease at every third of it, where the lock is renewed
 * or its caller wants it to be. */
enum lock_status lock_acquire(struct lock *lock, const char *key, int64_t deadline_us,
                              struct lock_grant *ret_grant);
/* Ends the watchdog's work, then as driver->release. */
enum lock_status lock_release(struct lock *lock, struct lock_grant *grant);
/* Ends the watchdog's work for all that is still held, then as driver->close. LOCK may be NULL. */
void lock_close(struct lock *lock);

/* All locks, by the name of the strategy that uses them; ended by NULL. */
extern const struct lock_driver *const all_locks[];

/* The server of REDIS_URL, where stock may lie as well. */
extern const struct lock_server redis_server;

extern const struct lock_driver process_mutex;
extern const struct lock_driver process_mutex_per_product;
extern const struct lock_driver process_mutex_wrong_object;
extern const struct lock_driver process_mutex_reentrant;

/* PostgreSQL */
extern const struct lock_driver lock_row, lock_table, lock_shedlock;
/* Redis, one server */
extern const struct lock_driver redis_setnx_forever, redis_setnx, redis_setnx_repair, redis_del,
    redis_get_del;
extern const struct lock_driver redis_lock, redis_fenced;
extern const struct lock_driver redis_registry, redis_registry_shared;
extern const struct lock_driver redis_reentrant, redis_fair;
/* Redis, a majority of several */
extern const struct lock_driver redlock, redisson_redlock;
/* ZooKeeper */
extern const struct lock_driver zookeeper_naive, zookeeper_herd, zookeeper_queue, curator;
/* etcd */
extern const struct lock_driver etcd_mutex, etcd_cas;

#endif
