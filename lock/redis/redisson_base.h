/* A lock in the format of Redisson, the Java client: a hash with one field, <client's UUID>:<number of the handle>, whose
 * value is the hold count. One thread at a time for each handle. */
#ifndef OVERSELL_LOCK_REDIS_REDISSON_BASE_H
#define OVERSELL_LOCK_REDIS_REDISSON_BASE_H

#include "lock/redis/client/connection.h"

struct redisson_handle {
    struct lock base;
    struct redis *redis;
    const char *url; /* for the subscriber; not ours */
    size_t url_size;
    int64_t limit_ms;  /* no request takes longer; LOCK_COMMAND_MS, unless its maker says less */
    char identity[64]; /* this handle: what a thread is to Redisson */
    int held;          /* how many grants of this handle are out */
};

/* What differs between Redisson's locks: a driver's variant. All scripts get KEYS lock, channel and, where there is a
 * queue, queue, places; ARGV the contender's identity, the lease in ms, how many grants it knows of, for how long it asks for
 * a place in ms. */
struct redisson_kind {
    /* nil: granted; else in how many ms to look again, below 0 where it does not know */
    struct redis_script *take;
    struct redis_script *release; /* nil: it was not held */
    /* For a contender whose last request was lost: makes the hold count what ARGV says and leaves the queue, however often
     * it runs. nil: the lock was not held. */
    struct redis_script *correct;
    bool queues; /* waiters have places in a queue, and a channel each */
};

/* A number for a new handle, unique in this process. */
uint64_t redisson_next_number(void);
/* Prepares a handle at URL (SIZE bytes of it, kept, not copied), which is contender NUMBER of this process. False: out of
 * memory, or no randomness. */
bool redisson_open_at(struct redisson_handle *r, const char *url, size_t size, uint64_t number);
/* As in struct lock_driver; redisson_open is for the server of REDIS_URL. */
bool redisson_open(struct lock *lock);
enum lock_status redisson_acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                  struct lock_grant *ret_grant);
enum lock_status redisson_release(struct lock *lock, struct lock_grant *grant);
enum lock_status redisson_still_held(struct lock *lock, const struct lock_grant *grant);
enum lock_status redisson_renew(struct lock *lock, const struct lock_grant *grant);
void redisson_close(struct lock *lock);

#define REDISSON_FUNCTIONS                                                                                   \
    .server = &redis_server, .handle_size = sizeof(struct redisson_handle), .open = redisson_open,           \
    .acquire = redisson_acquire, .release = redisson_release, .still_held = redisson_still_held,             \
    .renew = redisson_renew, .close = redisson_close

/* Runs SCRIPT for the lock KEY and the contender WHO, which asks for a place for PLACE_MS, within LIMIT_MS. LOCK_OK: *RET_REPLY
 * is the caller's to free. */
enum lock_status redisson_run(struct redisson_handle *r, struct redis_script *script, const char *key,
                              const char *who, int64_t place_ms, int64_t limit_ms, redisReply **ret_reply);

#endif
