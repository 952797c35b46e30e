/* What an implementation of a lock provides, and the functions that implementations share. To add a lock: fill in a
 * struct lock_driver, declare it in lock/registry.h and list it in lock/registry.c. */
#ifndef OVERSELL_LOCK_LOCK_DRIVER_H
#define OVERSELL_LOCK_LOCK_DRIVER_H

#include "lock/config.h"
#include "lock/lock.h"

#include <pthread.h>

/* What can end a grant although its holder did nothing wrong. */
enum lock_peril {
    PERIL_PAUSE = 1 << 0,      /* the process sleeps for longer than the lease */
    PERIL_DISCONNECT = 1 << 1, /* its connection or session breaks */
    PERIL_CLOCK = 1 << 2,      /* a clock jumps, here or on the server */
    PERIL_RESTART = 1 << 3,    /* the lock's server restarts without its memory */
};

/* What must last for a grant to last, in addition to its holder. */
enum lock_carrier {
    CARRIER_NONE,      /* nothing: only a release ends it, or the end of its process or of its server */
    CARRIER_LEASE,     /* a time that the lock gives it, after which it ends by itself */
    CARRIER_SESSION,   /* the holder's session with a lock server, which keeps it alive */
    CARRIER_CONNECTION /* the holder's connection */
};

/* What a lock promises: shown to users, and tested one by one in the contract tests. */
struct lock_properties {
    const char *mechanism; /* in a few words */
    bool reentrant;        /* its holder may take it again */
    bool blocking;         /* a waiter is woken; otherwise it polls */
    bool fair;             /* first come, first served */
    enum lock_carrier carrier;
    bool renewed;        /* its lease is renewed while its holder lives, unless the caller says otherwise */
    bool fenced;         /* a grant carries a token that only grows */
    bool survives_crash; /* a holder's death frees it */
    bool survives_minority; /* any minority of its servers may fail */
    unsigned perils;        /* enum lock_peril, or-ed */
};

/* A kind of server that locks live on. */
struct lock_server {
    const char *name;           /* "redis", …: named in errors when it does not answer */
    const char *setting;        /* the environment variable with its address */
    const char *const *address; /* where lock_config keeps it: "" where there is no such server */
    /* LOCK_OK: it answered before DEADLINE; else RET_ERROR has the reason. Any thread may call; through lock_ping. */
    enum lock_status (*ping)(int64_t deadline_us, char *ret_error, size_t size);
    /* How many sessions this process has lost so far; NULL where there are none. Any thread may call. */
    uint64_t (*sessions_lost)(void);
};

/* One lock. Callers use lock_open, lock_acquire, lock_release, lock_still_held and lock_close instead of its functions. */
struct lock_driver {
    const char *name;                 /* also the name of the strategy that uses it */
    const struct lock_server *server; /* what must be reachable; NULL: the process itself */
    struct lock_properties properties;
    /* What is particular to this lock among those that share its functions: a struct of theirs, or NULL. */
    const void *variant;
    /* of the lock's own struct, which begins with a struct lock; 0: it is a struct lock */
    size_t handle_size;
    /* Prepares a new handle, which is all zero except LOCK->driver. Connects when first used, not here. False: out of memory;
     * then close is called too. NULL: nothing to prepare. */
    bool (*open)(struct lock *lock);
    /* As lock_acquire; DEADLINE is never negative. Reports STEP_WAIT when it begins to wait; a lock that polls reports it after every try that found
     * the lock taken. In a queue, *ret_grant identifies the waiter's place while it waits. A waiter that loses its place takes
     * another one: never LOCK_LOST. */
    enum lock_status (*acquire)(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant);
    /* As lock_release. Takes up to LOCK_COMMAND_MS. A grant that was released before is LOCK_LOST or LOCK_NOT_OWNER. */
    enum lock_status (*release)(struct lock *lock, struct lock_grant *grant);
    /* As lock_still_held. The explorer also asks with another handle than the one that acquired, by the grant's token. A
     * lock that cannot answer this, because it belongs to a connection, has LOCK_ENDS_WITH_SESSION in its lab. */
    enum lock_status (*still_held)(struct lock *lock, const struct lock_grant *grant);
    /* Lets the lease last lock->lease_ms from now on; NULL where there is no lease. May be called with another handle
     * than the one that acquired, by another thread, with a copy of the grant whose impl is NULL. */
    enum lock_status (*renew)(struct lock *lock, const struct lock_grant *grant);
    /* Makes the next token of KEY greater than FENCE, after the server has lost its counter; NULL where it cannot. */
    enum lock_status (*raise_fence)(struct lock *lock, const char *key, int64_t fence);
    /* Frees what the handle refers to, but not the handle; a grant that it still has ends by itself. NULL: nothing to free. */
    void (*close)(struct lock *lock);
    /* what the explorer needs beside these functions: lock/lab.h; NULL: all zero */
    const struct lock_lab *lab;
};

/* ---- functions for implementations ------------------------------------------------------------------------ */

enum {
    LOCK_TRY_MS = 250, /* a request may take this long even if the deadline is nearer or has passed … */
    LOCK_COMMAND_MS = 2000, /* … and never longer than this: then its server is away */
};

/* How long one request may take, in milliseconds, that usually may take USUAL: longer where lock_config.try_ms says so. */
int64_t lock_try_ms(int64_t usual_ms);
/* How long one request may take, in milliseconds, when the caller's deadline is DEADLINE. */
int64_t lock_command_ms(int64_t deadline_us);

/* Writes the reason to lock->error and returns STATUS. */
__attribute__((format(printf, 3, 4))) enum lock_status lock_fail(struct lock *lock, enum lock_status status,
                                                                 const char *format, ...);

/* Fills in a grant of KEY; the rest of it is zero. */
void lock_fill_grant(struct lock_grant *ret_grant, const char *key, const char *token, int64_t lease_end_us);

enum { LOCK_TOKEN_SIZE = 33 };
/* 32 random hex digits of the kernel: a contender's identity. False: the kernel had none. Any thread may call. */
bool lock_random_token(char ret_token[static LOCK_TOKEN_SIZE]);

enum { LOCK_UUID_SIZE = 37 };
/* A UUID of version 4, from the same source. */
bool lock_random_uuid(char ret_uuid[static LOCK_UUID_SIZE]);

/* For locks that poll: reports STEP_WAIT, then sleeps for PERIOD_MS, a fifth more or less at random, but not past the
 * deadline. False: the deadline has passed. */
bool lock_poll_pause(struct lock *lock, int64_t period_ms, int64_t deadline_us);

/* The name of KEY on the server, with the configured prefix: "oversell:lock:product:1" for "" and ":lock:". */
void lock_server_key(char *ret_key, size_t size, const char *before, const char *between, const char *key);

#endif
