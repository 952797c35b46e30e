/* `redis-reentrant`: a lock that its holder may take again, whose waiters are woken, and whose lease is renewed, as
 * RedissonLock of Redisson 4.7, the Java client (org.redisson.RedissonLock).
 *
 * The lock is a hash with one field, the holder, whose value counts how often the holder has taken it. Every step is a
 * script, which Redis runs without anything in between: "is it free?" and "then it is mine" cannot come apart. The release
 * publishes a message; a waiter hears it, and tries again. Without a message it tries again when the lease would end, since
 * the holder may have died.
 *
 * What can go wrong: a holder that sleeps for longer than the lease (Redisson's "watchdog", lock/lease_renewer.c here,
 * renews it only while the process runs) continues to write while the next one holds the lock. Only a fencing token helps
 * against that.
 *
 * This file has the scripts. lock/redis/redisson_base.c runs them, also those of redis-fair. */
#include "lock/redis/redisson_base.h"
#include "lock/registry.h"

/* A request whose reply was lost may be done after all, at any time. So the first grant sets the count, and the release of
 * the last one ends the lock whatever the count is: the next request makes such a lost one harmless. */
#define FREE_IT                                                                                              \
    "redis.call('del', KEYS[1]) "                                                                            \
    "redis.call('publish', KEYS[2], '0') "

static struct redis_script take_script = {
    .text = "local mine = redis.call('hexists', KEYS[1], ARGV[1]) == 1 "
            "if not mine and redis.call('exists', KEYS[1]) == 1 then "
            "    return redis.call('pttl', KEYS[1]) "
            "end "
            "if mine and ARGV[3] ~= '0' then "
            "    redis.call('hincrby', KEYS[1], ARGV[1], 1) "
            "else "
            "    redis.call('hset', KEYS[1], ARGV[1], 1) "
            "end "
            "redis.call('pexpire', KEYS[1], ARGV[2]) "
            "return nil",
};
static struct redis_script release_script = {
    .text = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end "
            "if ARGV[3] ~= '0' and redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then "
            "    redis.call('pexpire', KEYS[1], ARGV[2]) "
            "    return 0 "
            "end " FREE_IT "return 1",
};
static struct redis_script correct_script = {
    .text = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end "
            "if ARGV[3] ~= '0' then "
            "    redis.call('hset', KEYS[1], ARGV[1], ARGV[3]) "
            "    return 0 "
            "end " FREE_IT "return 1",
};

const struct lock_driver redis_reentrant = {
    .name = "redis-reentrant",
    .variant = &(const struct redisson_kind){&take_script, &release_script, &correct_script, .queues = false},
    .properties = {.mechanism =
                       "a hash in Redis with a hold count, its release published (as Redisson's RLock)",
                   .reentrant = true,
                   .blocking = true,
                   .carrier = CARRIER_LEASE,
                   .renewed = true,
                   .survives_crash = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART},
    REDISSON_FUNCTIONS,
};
