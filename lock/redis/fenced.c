/* `redis-fenced`: redis-lock, and with each grant a number that is greater than all before it, the fencing token, after
 * Martin Kleppmann's "How to do distributed locking" (2016).
 *
 * A holder that slept for longer than its lease still believes that it holds the lock, but its token is an old one. The
 * database has seen a newer token, and refuses the write. The check is made there, not here, and it is right only if the
 * token is registered before the stock is read (see service/engine/create_order.c).
 *
 * The counter is a separate key without a time to live, with the name that Redisson's fenced lock gives it. If Redis loses
 * it, the database refuses the next tokens as old, which stops orders but sells nothing twice; then raise_fence sets the
 * counter to the greatest token that the database has seen. */
#include "base/clock.h"
#include "lock/redis/lock.h"
#include "lock/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* INCR comes before SET, since a script that fails in the middle keeps what it has done: a counter that is no number must
 * not leave a lock behind. The token is returned as a string, because Lua's numbers are floating point, which cannot tell
 * large integers above 2^53 apart. */
static struct redis_script take_script = {
    .text = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end"
            " redis.call('INCR', KEYS[2])"
            " redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])"
            " return redis.call('GET', KEYS[2])",
};
/* Compared as digits, for the same reason: the longer number is the greater one. */
static struct redis_script raise_script = {
    .text = "local now, least = redis.call('GET', KEYS[1]) or '0', ARGV[1]"
            " if now:sub(1, 1) == '-' or #now < #least or (#now == #least and now < least)"
            " then redis.call('SET', KEYS[1], least) end"
            " return 1",
};

static void counter_key(char ret_key[static REDIS_KEY_SIZE + 32], const char *server_key)
{
    snprintf(ret_key, REDIS_KEY_SIZE + 32, "redisson_lock_token:{%s}", server_key);
}

static bool read_fence(const char *text, int64_t *ret_fence)
{
    char *end;
    errno = 0;
    *ret_fence = strtoll(text, &end, 10);
    return end != text && !*end && errno == 0;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    char server_key[REDIS_KEY_SIZE], counter[REDIS_KEY_SIZE + 32], token[LOCK_TOKEN_SIZE], lease[24];
    const char *words[] = {server_key, counter, token, lease};
    int64_t pause_ms = 0;
    string_lock_key(server_key, key);
    counter_key(counter, server_key);
    snprintf(lease, sizeof lease, "%lld", (long long)lock->lease_ms);
    if (!lock_random_token(token))
        return lock_fail(lock, LOCK_FAILED, "no randomness");
    do {
        AUTO_REPLY reply = NULL;
        int64_t asked_us = monotonic_us();
        enum lock_status status = redis_eval(redis_of(lock), lock, lock_command_ms(deadline_us), &reply,
                                             &take_script, 2, words, 4);
        status = string_lock_check(lock, status, reply, REPLY_STRING | REPLY_NUMBER);
        if (status != LOCK_OK)
            return redis_lock_not_got(lock, server_key, token, status);
        if (reply->type == REDIS_REPLY_STRING) {
            string_lock_grant(lock, key, token, asked_us, ret_grant);
            if (read_fence(reply->str, &ret_grant->fence))
                return LOCK_OK;
            (void)redis_lock_give_back(lock, server_key, token);
            return lock_fail(lock, LOCK_REFUSED, "%s keeps no number", counter);
        }
    } while (string_lock_pause(lock, &pause_ms, deadline_us));
    return string_lock_busy(lock, server_key);
}

static enum lock_status raise_fence(struct lock *lock, const char *key, int64_t fence)
{
    AUTO_REPLY reply = NULL;
    char server_key[REDIS_KEY_SIZE], counter[REDIS_KEY_SIZE + 32], least[24];
    const char *words[] = {counter, least};
    string_lock_key(server_key, key);
    counter_key(counter, server_key);
    snprintf(least, sizeof least, "%lld", (long long)fence);
    enum lock_status status = redis_eval(redis_of(lock), lock, LOCK_COMMAND_MS, &reply, &raise_script, 1,
                                         words, 2);
    return string_lock_explain(lock, counter, status);
}

const struct lock_driver redis_fenced = {
    .name = "redis-fenced",
    .server = &redis_server,
    .properties = {.mechanism = "as redis-lock, with a token counted by INCR in the script that takes it",
                   .carrier = CARRIER_LEASE,
                   .fenced = true,
                   .survives_crash = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART},
    .handle_size = sizeof(struct string_lock),
    .open = string_lock_open,
    .acquire = acquire,
    .release = redis_lock_release,
    .still_held = redis_lock_still_held,
    .renew = redis_lock_renew,
    .raise_fence = raise_fence,
    .close = string_lock_close,
    .lab = &string_lock_lab,
};
