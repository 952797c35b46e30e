/* The parts of redis-fair's scripts that the explorer's scripts use too, and how they are run. */
#ifndef OVERSELL_LOCK_REDIS_REDISSON_FAIR_H
#define OVERSELL_LOCK_REDIS_REDISSON_FAIR_H

#include "lock/redis/redisson_base.h"

/* All scripts: KEYS lock, queue, places, channel; ARGV the contender's identity, the lease in ms, how many grants it
 * knows of (see lock/redis/redisson_lock.c), for how long it asks for a place in ms. */
#define REDISSON_FAIR_NAMES                                                                                  \
    "local lock, queue, places, who = KEYS[1], KEYS[2], KEYS[3], ARGV[1] "                                   \
    "local clock = redis.call('time') "                                                                      \
    "local now = clock[1] * 1000 + math.floor(clock[2] / 1000) "

/* Sets FIRST to the first in the queue whose place has not timed out, or false, and removes those before it. */
#define REDISSON_FAIR_DROP_DEAD_PLACES                                                                       \
    "local first, good_until "                                                                               \
    "while true do "                                                                                         \
    "    first = redis.call('lindex', queue, 0) "                                                            \
    "    good_until = first and tonumber(redis.call('zscore', places, first) or 0) "                         \
    "    if not first or good_until > now then break end "                                                   \
    "    redis.call('lpop', queue) "                                                                         \
    "    redis.call('zrem', places, first) "                                                                 \
    "end "

/* Runs SCRIPT for the lock KEY and the contender WHO, within LIMIT_MS. LOCK_OK: *RET_REPLY is the caller's to free. One
 * thread at a time for each handle. */
enum lock_status redisson_fair_run(struct lock *lock, struct redis_script *script, const char *key,
                                   const char *who, int64_t place_ms, int64_t limit_ms,
                                   redisReply **ret_reply);

extern const struct lock_lab redisson_fair_lab; /* lab.c */

#endif
