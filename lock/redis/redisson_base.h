/* What the locks in Redisson's format share: names, the contender's identity, and questions about a hash with one
 * field, <client's UUID>:<number>, whose value is the hold count. */
#ifndef OVERSELL_LOCK_REDIS_REDISSON_BASE_H
#define OVERSELL_LOCK_REDIS_REDISSON_BASE_H

#include "lock/redis/client/connection.h"

enum {
    RLOCK_NAME_SIZE = 200,
    RLOCK_AMENDS_MS = 50, /* what follows a lost reply is sent, and not waited for long */
};

struct rlock {
    struct lock base;
    struct redis *redis;
    const char *url; /* for the subscriber; not ours */
    size_t url_size;
    int64_t limit_ms;  /* no request takes longer; LOCK_COMMAND_MS, unless its maker says less */
    char identity[64]; /* this handle: what a thread is to Redisson */
    int held;          /* how many grants of this handle are out */
};

/* A number for a new handle, unique in this process. */
uint64_t rlock_next_number(void);
/* A handle at URL (SIZE bytes of it, kept, not copied), which is contender NUMBER of this process. */
enum lock_status rlock_open_at(const struct lock_ops *ops, const char *url, size_t size, uint64_t number,
                               struct lock **ret_lock);
/* lock_ops: */
enum lock_status rlock_open(const struct lock_ops *ops, struct lock **ret_lock); /* at REDIS_URL */
enum lock_status rlock_still_held(struct lock *lock, const struct lock_grant *grant);
enum lock_status rlock_renew(struct lock *lock, const struct lock_grant *grant);
void rlock_close(struct lock *lock);

/* The lock's name, which is its key: "oversell:lock:product:1". */
void rlock_name(char ret_name[static RLOCK_NAME_SIZE], const char *key);
/* A name that belongs to it: "redisson_lock__channel:{oversell:lock:product:1}" for "redisson_lock__channel". */
void rlock_name_beside(char ret_name[static RLOCK_NAME_SIZE], const char *what, const char *name);

/* LIMIT_MS, or the handle's own limit if that is less. */
int64_t rlock_limit(const struct rlock *r, int64_t limit_ms);

/* Fills in a grant that began with a request sent at SENT. */
void rlock_grant(struct rlock *r, const char *key, int64_t sent_us, struct lock_grant *ret_grant);

#endif
