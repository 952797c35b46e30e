/* `redis-reentrant`: a lock that its holder may take again, whose waiters are woken, and whose lease is renewed.
 *
 * The lock is a hash with one field, the holder, whose value counts how often he has taken it. Every step is a script,
 * which Redis runs without anything in between: "is it free?" and "then it is mine" cannot come apart. The release
 * publishes a message; a waiter hears it, and tries again. In between it sleeps until the lease would end, should
 * its holder die without a word.
 *
 * What can go wrong: a holder that sleeps for longer than the lease (Redisson's "watchdog", lock/lease_renewer.c here,
 * renews it only while the process runs) goes on writing while the next one holds the lock. Only a fencing token helps against that.
 *
 * Format and behaviour as Redisson 4.7's RedissonLock. */
#include "base/clock.h"
#include "lock/redis/client/wakeup.h"
#include "lock/redis/redisson_base.h"
#include "lock/registry.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOK_AGAIN_MS = 10000
}; /* at a lock that is held for longer, or without end, as a stranger's may be */

/* All three: KEYS lock, channel; ARGV who, lease in ms, how many of his grants the holder knows of.
 * A request whose reply was lost may be done after all, at any time. So the first grant sets the count, and the
 * release of the last one ends the lock whatever the count is: such a request is forgotten with the next. */
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
/* After a lost reply: makes the count what the holder knows it to be, however often it is run. */
static struct redis_script correct_script = {
    .text = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end "
            "if ARGV[3] ~= '0' then "
            "    redis.call('hset', KEYS[1], ARGV[1], ARGV[3]) "
            "    return 0 "
            "end " FREE_IT "return 1",
};

static enum lock_status run(struct redisson_handle *r, struct redis_script *script, const char *key,
                            const char *who, int64_t limit_ms, redisReply **ret_reply)
{
    char name[REDISSON_NAME_SIZE], channel[REDISSON_NAME_SIZE], lease[24], count[12];
    redisson_name(name, key);
    redisson_name_beside(channel, "redisson_lock__channel", name);
    snprintf(lease, sizeof lease, "%lld", (long long)r->base.lease_ms);
    snprintf(count, sizeof count, "%d", r->held);
    const char *words[] = {name, channel, who, lease, count};
    return redis_eval(r->redis, &r->base, redisson_limit(r, limit_ms), ret_reply, script, 2, words, 5);
}

/* One request: LOCK_OK, or LOCK_TIMED_OUT with the time until the holder's lease ends. */
static enum lock_status try_once(struct redisson_handle *r, const char *key, int64_t deadline_us,
                                 int64_t *ret_ttl_ms, struct lock_grant *ret_grant)
{
    AUTO_REPLY reply = NULL;
    int64_t sent_us = monotonic_us();
    enum lock_status status = run(r, &take_script, key, r->identity, lock_command_ms(deadline_us), &reply);
    if (status == LOCK_AWAY &&
        redis_was_sent(r->redis)) { /* it may be ours without our knowing: give it back */
        AUTO_REPLY ignored = NULL;
        (void)run(r, &correct_script, key, r->identity, REDISSON_AMENDS_MS, &ignored);
    }
    if (status != LOCK_OK)
        return status;
    if (reply->type == REDIS_REPLY_NIL) {
        redisson_grant(r, key, sent_us, ret_grant);
        return LOCK_OK;
    }
    *ret_ttl_ms = redis_integer(reply);
    if (*ret_ttl_ms < 0 || *ret_ttl_ms > LOOK_AGAIN_MS)
        *ret_ttl_ms = LOOK_AGAIN_MS;
    return lock_fail(&r->base, LOCK_TIMED_OUT, "taken");
}

/* Subscribes first and tries again then: a release between the first try and the subscription is not missed. */
static enum lock_status wait_for_it(struct redisson_handle *r, const char *key, int64_t deadline_us,
                                    struct lock_grant *ret_grant)
{
    char name[REDISSON_NAME_SIZE], channel[REDISSON_NAME_SIZE];
    struct redis_waiter *waiter;
    int64_t ttl_ms = 0;
    redisson_name(name, key);
    redisson_name_beside(channel, "redisson_lock__channel", name);
    enum lock_status status = redis_wakeup_join(&r->base, r->url, r->url_size, channel,
                                                lock_command_ms(deadline_us), &waiter);
    if (status != LOCK_OK)
        return status;
    while ((status = try_once(r, key, deadline_us, &ttl_ms, ret_grant)) == LOCK_TIMED_OUT &&
           monotonic_us() < deadline_us) {
        int64_t lease_end_us = monotonic_us() + (ttl_ms + 1) * 1000;
        redis_wakeup_wait(&r->base, waiter, lease_end_us < deadline_us ? lease_end_us : deadline_us);
    }
    redis_wakeup_leave(waiter, status);
    return status;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    int64_t ttl_ms = 0;
    enum lock_status status = try_once(r, key, deadline_us, &ttl_ms, ret_grant);
    if (status != LOCK_TIMED_OUT || monotonic_us() >= deadline_us)
        return status;
    report_step(lock->observer, STEP_WAIT, STEP_NO_VALUE);
    return wait_for_it(r, key, deadline_us, ret_grant);
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    AUTO_REPLY reply = NULL;
    if (!*grant->token)
        return lock_fail(lock, LOCK_NOT_OWNER, "released before");
    if (r->held > 0)
        r->held--;
    enum lock_status status = run(r, &release_script, grant->key, grant->token, LOCK_COMMAND_MS, &reply);
    if (status == LOCK_OK && reply->type == REDIS_REPLY_NIL)
        status = lock_fail(lock, LOCK_LOST, "the lease had ended");
    if (status == LOCK_AWAY) { /* done or not: once more, in a way that can be repeated */
        AUTO_REPLY again = NULL;
        if (run(r, &correct_script, grant->key, grant->token, REDISSON_AMENDS_MS, &again) == LOCK_OK &&
            again->type != REDIS_REPLY_NIL)
            status = LOCK_OK;
    }
    *grant->token = '\0'; /* spent */
    return status;
}

const struct lock_driver redis_reentrant = {
    .name = "redis-reentrant",
    .server = &redis_server,
    .properties = {.mechanism =
                       "a hash in Redis with a hold count, its release published (as Redisson's RLock)",
                   .reentrant = true,
                   .blocking = true,
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
};
