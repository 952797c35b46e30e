/* `redis-fair`: redis-reentrant with a queue in Redis, first come, first served.
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
 * Format as Redisson 4.7's RedissonFairLock, whose waiters may stand in the same queue. Times are the server's here,
 * each client's own there; a queue that everybody has left for dead is cleaned away after an hour, and not kept. */
#include "lock/redis/redisson_fair.h"
#include "base/clock.h"
#include "lock/redis/client/wakeup.h"
#include "lock/registry.h"

#include <stdio.h>
#include <string.h>

#define WAKE_FIRST "if first then redis.call('publish', KEYS[4] .. ':' .. first, '0') end "

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
    "return held and 1 or 0",
};

enum lock_status redisson_fair_run(struct lock *lock, struct redis_script *script, const char *key,
                                   const char *who, int64_t place_ms, int64_t limit_ms,
                                   redisReply **ret_reply)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    char name[REDISSON_NAME_SIZE], queue[REDISSON_NAME_SIZE], places[REDISSON_NAME_SIZE],
        channel[REDISSON_NAME_SIZE];
    char lease[24], count[12], place[24];
    redisson_name(name, key);
    redisson_name_beside(queue, "redisson_lock_queue", name);
    redisson_name_beside(places, "redisson_lock_timeout", name);
    redisson_name_beside(channel, "redisson_lock__channel", name);
    snprintf(lease, sizeof lease, "%lld", (long long)r->base.lease_ms);
    snprintf(count, sizeof count, "%d", r->held);
    snprintf(place, sizeof place, "%lld", (long long)place_ms);
    const char *words[] = {name, queue, places, channel, who, lease, count, place};
    return redis_eval(r->redis, lock, redisson_limit(r, limit_ms), ret_reply, script, 4, words, 8);
}

static void leave(struct redisson_handle *r, const char *key, int64_t limit_ms)
{
    AUTO_REPLY ignored = NULL;
    (void)redisson_fair_run(&r->base, &leave_script, key, r->identity, 0, limit_ms,
                            &ignored); /* else the place times out */
}

/* One request, with a place in the queue for PLACE_MS where it is taken (0: without): LOCK_OK, or LOCK_TIMED_OUT with the time
 * after which to look again unasked. */
static enum lock_status try_once(struct redisson_handle *r, const char *key, int64_t deadline_us,
                                 int64_t place_ms, int64_t *ret_pause_ms, struct lock_grant *ret_grant)
{
    AUTO_REPLY reply = NULL;
    int64_t sent_us = monotonic_us();
    enum lock_status status = redisson_fair_run(&r->base, &take_script, key, r->identity, place_ms,
                                                lock_command_ms(deadline_us), &reply);
    if (status == LOCK_AWAY && redis_was_sent(r->redis))
        leave(r, key, REDISSON_AMENDS_MS); /* it may be ours without our knowing: give it back */
    if (status != LOCK_OK)
        return status;
    if (reply->type == REDIS_REPLY_NIL) {
        redisson_grant(r, key, sent_us, ret_grant);
        return LOCK_OK;
    }
    *ret_pause_ms = redis_integer(reply);
    if (*ret_pause_ms < 0 || *ret_pause_ms > r->base.lease_ms / 3)
        *ret_pause_ms = r->base.lease_ms / 3; /* then it is time to renew our place */
    return lock_fail(&r->base, LOCK_TIMED_OUT, "taken");
}

/* A place is good for one lease, or until our own wait ends and the last try is done. */
static int64_t place_for(const struct redisson_handle *r, int64_t deadline_us)
{
    int64_t left_ms = (deadline_us - monotonic_us()) / 1000;
    return (left_ms < r->base.lease_ms ? left_ms : r->base.lease_ms) + LOCK_TRY_MS;
}

/* The waiter, named in the same way as the holder. */
static void name_place(const struct redisson_handle *r, const char *key, struct lock_grant *ret_grant)
{
    *ret_grant = (struct lock_grant){.lease_end_us = INT64_MAX};
    snprintf(ret_grant->key, sizeof ret_grant->key, "%s", key);
    snprintf(ret_grant->token, sizeof ret_grant->token, "%s", r->identity);
}

/* Subscribes before it takes its place in the queue, so that it misses no message. */
static enum lock_status wait_for_turn(struct redisson_handle *r, const char *key, int64_t deadline_us,
                                      struct lock_grant *ret_grant)
{
    char name[REDISSON_NAME_SIZE], all[REDISSON_NAME_SIZE], channel[REDISSON_NAME_SIZE + sizeof r->identity];
    AUTO_WAITER waiter = NULL;
    int64_t pause_ms = 0;
    redisson_name(name, key);
    redisson_name_beside(all, "redisson_lock__channel", name);
    snprintf(channel, sizeof channel, "%s:%s", all, r->identity);
    enum lock_status status = redis_wakeup_join(&r->base, r->url, r->url_size, channel,
                                                lock_command_ms(deadline_us), &waiter);
    if (status != LOCK_OK)
        return status;
    while ((status = try_once(r, key, deadline_us, place_for(r, deadline_us), &pause_ms, ret_grant)) ==
           LOCK_TIMED_OUT) {
        name_place(r, key, ret_grant);
        if (!redis_wakeup_wait_for_turn(&r->base, waiter, ret_grant, pause_ms + 1, deadline_us))
            break;
    }
    if (status == LOCK_TIMED_OUT ||
        status == LOCK_REFUSED) /* where the server is away, try_once has tried to */
        leave(r, key, LOCK_TRY_MS);
    redis_wakeup_leave(waiter, status);
    waiter = NULL;
    return status;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    int64_t pause_ms = 0;
    enum lock_status status = try_once(r, key, deadline_us, 0, &pause_ms, ret_grant);
    if (status != LOCK_TIMED_OUT || monotonic_us() >= deadline_us)
        return status;
    report_step(lock->observer, STEP_WAIT, STEP_NO_VALUE);
    return wait_for_turn(r, key, deadline_us, ret_grant);
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    AUTO_REPLY reply = NULL;
    if (!*grant->token)
        return lock_fail(lock, LOCK_NOT_OWNER, "released before");
    if (r->held > 0)
        r->held--;
    enum lock_status status = redisson_fair_run(&r->base, &release_script, grant->key, grant->token, 0,
                                                LOCK_COMMAND_MS, &reply);
    if (status == LOCK_OK && reply->type == REDIS_REPLY_NIL)
        status = lock_fail(lock, LOCK_LOST, "the lease had ended");
    if (status == LOCK_AWAY) { /* done or not: once more, in a way that can be repeated */
        AUTO_REPLY again = NULL;
        if (redisson_fair_run(&r->base, &leave_script, grant->key, grant->token, 0, REDISSON_AMENDS_MS,
                              &again) == LOCK_OK &&
            redis_integer(again) == 1)
            status = LOCK_OK;
    }
    *grant->token = '\0'; /* spent */
    return status;
}

const struct lock_driver redis_fair = {
    .name = "redis-fair",
    .server = &redis_server,
    .properties = {.mechanism = "a hash in Redis and a queue of those who wait (as Redisson's fair lock)",
                   .reentrant = true,
                   .blocking = true,
                   .fair = true,
                   .leased = true,
                   .renewed = true,
                   .survives_crash = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART},
    .open = redisson_open,
    .acquire = acquire,
    .release = release,
    .still_held = redisson_still_held,
    .renew = redisson_renew,
    .close = redisson_close,
    .lab = &redisson_fair_lab,
};
