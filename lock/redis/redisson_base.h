/* What locks in the format of Redisson (the Java client) share, as its RedissonBaseLock: the lock is a hash with one
 * field, <client's UUID>:<number of the handle>, whose value is the hold count. One thread at a time for each handle. */
#ifndef OVERSELL_LOCK_REDIS_REDISSON_BASE_H
#define OVERSELL_LOCK_REDIS_REDISSON_BASE_H

#include "lock/redis/client/connection.h"

enum {
    REDISSON_NAME_SIZE = 200,
    REDISSON_AMENDS_MS = 50, /* what follows a lost reply is sent, and not waited for long */
};

struct redisson_handle {
    struct lock base;
    struct redis *redis;
    const char *url; /* for the subscriber; not ours */
    size_t url_size;
    int64_t limit_ms;  /* no request takes longer; LOCK_COMMAND_MS, unless its maker says less */
    char identity[64]; /* this handle: what a thread is to Redisson */
    int held;          /* how many grants of this handle are out */
};

/* A number for a new handle, unique in this process. */
uint64_t redisson_next_number(void);
/* A handle at URL (SIZE bytes of it, kept, not copied), which is contender NUMBER of this process. */
enum lock_status redisson_open_at(const struct lock_driver *driver, const char *url, size_t size,
                                  uint64_t number, struct lock **ret_lock);
/* lock_driver: */
enum lock_status redisson_open(const struct lock_driver *driver, struct lock **ret_lock); /* at REDIS_URL */
enum lock_status redisson_still_held(struct lock *lock, const struct lock_grant *grant);
enum lock_status redisson_renew(struct lock *lock, const struct lock_grant *grant);
void redisson_close(struct lock *lock);

/* The lock's name, which is its key: "oversell:lock:product:1". */
void redisson_name(char ret_name[static REDISSON_NAME_SIZE], const char *key);
/* A name that belongs to it: "redisson_lock__channel:{oversell:lock:product:1}" for "redisson_lock__channel". */
void redisson_name_beside(char ret_name[static REDISSON_NAME_SIZE], const char *what, const char *name);

/* LIMIT_MS, or the handle's own limit if that is less. */
int64_t redisson_limit(const struct redisson_handle *r, int64_t limit_ms);

/* Fills in a grant that began with a request sent at SENT. */
void redisson_grant(struct redisson_handle *r, const char *key, int64_t sent_us,
                    struct lock_grant *ret_grant);

#endif
