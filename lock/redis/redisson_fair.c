/* `redis-fair`: redis-reentrant with a queue in Redis, first come, first served, as RedissonFairLock of Redisson 4.7. This
 * file has its scripts, and lock/redis/redisson_base.c runs them.
 *
 * The waiters stand in a list; a sorted set beside it says until when each place is good. Only the first in the list
 * may take a lock that is free, and a release publishes to the channel of the first alone: one wake-up for one release.
 * A waiter that gives up leaves the queue, and if it was the first and the lock is free, wakes the next. One that died
 * cannot: its place times out. A waiter renews its place while it waits, and asks for no more than one lease, so
 * that a dead one does not keep the others for longer than a dead holder would.
 *
 * What it costs: a released lock stands idle until the first waiter has heard of it and has asked, though others may
 * be awake; redis-reentrant gives the lock to the first that asks.
 *
 * What can go wrong: as with redis-reentrant, a holder that sleeps for longer than the lease.
 *
 * Redisson's own waiters may stand in the same queue. Times are the server's here, each client's own there; a queue in which
 * all waiters have died is removed after an hour, and not kept. */
#include "lock/redis/redisson_fair.h"
#include "lock/registry.h"

#define WAKE_FIRST "if first then redis.call('publish', KEYS[2] .. ':' .. first, '0') end "

static struct redis_script take_script = {
    .text = REDISSON_FAIR_NAMES REDISSON_FAIR_DROP_DEAD_PLACES
    "local mine = redis.call('hexists', lock, who) == 1 "
    "local free = redis.call('exists', lock) == 0 "
    "if mine or free and (not first or first == who) then "
    "    if first == who then "
    "        redis.call('lpop', queue) "
    "        redis.call('zrem', places, who) "
    "    end "
    "    if mine and ARGV[3] ~= '0' then "
    "        redis.call('hincrby', lock, who, 1) "
    "    else "
    "        redis.call('hset', lock, who, 1) "
    "    end "
    "    redis.call('pexpire', lock, ARGV[2]) "
    "    return nil "
    "end "

    "local asked = tonumber(ARGV[4]) "
    "if asked > 0 then "
    "    local place = tonumber(redis.call('zscore', places, who) or 0) "
    "    if place == 0 then "
    /* A waiter with a longer wait may be Redisson's. Its turn will shorten all places by its own wait. */
    "        local last = redis.call('lindex', queue, -1) "
    "        local last_until = last and tonumber(redis.call('zscore', places, last) or 0) or 0 "
    "        if last_until > now + asked then place = last_until + asked end "
    "        redis.call('rpush', queue, who) "
    "    end "
    "    redis.call('zadd', places, math.max(place, now + asked), who) "
    "    redis.call('pexpire', queue, asked + 3600000) "
    "    redis.call('pexpire', places, asked + 3600000) "
    "end "

    /* Nobody will tell me when the lease ends, or the place of a dead waiter before me. */
    "local pause = redis.call('pttl', lock) "
    "if first and first ~= who and (pause < 0 or good_until - now < pause) then "
    "    pause = good_until - now "
    "end "
    "return pause",
};
static struct redis_script release_script = {
    .text = REDISSON_FAIR_NAMES "if redis.call('hexists', lock, who) == 0 then return nil end "
                                "if ARGV[3] ~= '0' and redis.call('hincrby', lock, who, -1) > 0 then "
                                "    redis.call('pexpire', lock, ARGV[2]) "
                                "    return 0 "
                                "end "
                                "redis.call('del', lock) " REDISSON_FAIR_DROP_DEAD_PLACES WAKE_FIRST
                                "return 1",
};
/* Out of the queue; and after a reply that was lost, the count is made what the holder knows it to be. */
static struct redis_script leave_script = {
    .text = REDISSON_FAIR_NAMES
    "redis.call('lrem', queue, 0, who) "
    "redis.call('zrem', places, who) "
    "local held = redis.call('hexists', lock, who) == 1 "
    "if held and ARGV[3] ~= '0' then redis.call('hset', lock, who, ARGV[3]) end "
    "if held and ARGV[3] == '0' then redis.call('del', lock) end " REDISSON_FAIR_DROP_DEAD_PLACES
    "if redis.call('exists', lock) == 0 then " WAKE_FIRST "end "
    "return held and 1 or nil",
};

const struct lock_driver redis_fair = {
    .name = "redis-fair",
    .variant = &(const struct redisson_kind){&take_script, &release_script, &leave_script, .queues = true},
    .properties = {.mechanism = "a hash in Redis and a queue of waiters (as Redisson's fair lock)",
                   .reentrant = true,
                   .blocking = true,
                   .fair = true,
                   .carrier = CARRIER_LEASE,
                   .renewed = true,
                   .survives_crash = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART},
    REDISSON_FUNCTIONS,
    .lab = &redisson_fair_lab,
};
