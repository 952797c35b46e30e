/* The parts of redis-fair's scripts that the explorer's scripts (lock/redis/lab.c) use too. */
#ifndef OVERSELL_LOCK_REDIS_REDISSON_FAIR_H
#define OVERSELL_LOCK_REDIS_REDISSON_FAIR_H

#include "lock/redis/redisson_base.h"

#define REDISSON_FAIR_NAMES                                                                                  \
    "local lock, queue, places, who = KEYS[1], KEYS[3], KEYS[4], ARGV[1] "                                   \
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

extern const struct lock_lab redisson_fair_lab; /* lab.c */

#endif
