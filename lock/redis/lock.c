/* `redis-lock`: the correct lock on one Redis server, after "Distributed Locks with Redis" in Redis's documentation.
 *
 * Taking it is one command: SET KEY TOKEN NX PX LEASE writes the key only if it is absent, and gives it a time to
 * live at once, so that a holder who dies never leaves it behind for ever. TOKEN is new and random for each
 * acquisition: it identifies the holder. Release and renewal are scripts, which Redis runs as one step. If the comparison
 * of the token and the DEL were two steps, the DEL could delete the next holder's lock (redis-get-del shows it).
 *
 * What can go wrong: a holder that sleeps for longer than the lease still believes that it holds the lock. No lock with a
 * lease can prevent that; a fencing token can (lock/redis/fenced.c). The lock is also lost when its one server restarts
 * without its data, or when a replica takes over before it has received the key. */
#include "lock/redis/lock.h"
#include "base/clock.h"
#include "lock/registry.h"

#include <stdio.h>
#include <string.h>

static struct redis_script release_script = {
    .text = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
};
static struct redis_script renew_script = {
    .text = "if redis.call('GET', KEYS[1]) == ARGV[1] then"
            " return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0",
};

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    char server_key[REDIS_KEY_SIZE], token[LOCK_TOKEN_SIZE];
    int64_t pause_ms = 0;
    string_lock_key(server_key, key);
    if (!lock_random_token(token))
        return lock_fail(lock, LOCK_FAILED, "no randomness");
    do {
        AUTO_REPLY reply = NULL;
        int64_t asked_us = monotonic_us();
        enum lock_status status = redis_command(redis_of(lock), lock, lock_command_ms(deadline_us), &reply,
                                                "SET %s %s NX PX %lld", server_key, token,
                                                (long long)lock->lease_ms);
        status = string_lock_check(lock, status, reply, REPLY_OK | REPLY_NIL);
        if (status != LOCK_OK)
            return redis_lock_not_got(lock, server_key, token, status);
        if (reply->type == REDIS_REPLY_STATUS) { /* else the key was there, and nothing was set */
            string_lock_grant(lock, key, token, asked_us, ret_grant);
            return LOCK_OK;
        }
    } while (string_lock_pause(lock, &pause_ms, deadline_us));
    return string_lock_busy(lock, server_key);
}

/* Deletes SERVER_KEY if its value is TOKEN. *ret_deleted: it was deleted. */
static enum lock_status delete_mine(struct lock *lock, int64_t limit_ms, const char *server_key,
                                    const char *token, bool *ret_deleted)
{
    AUTO_REPLY reply = NULL;
    const char *words[] = {server_key, token};
    enum lock_status status = redis_eval(redis_of(lock), lock, limit_ms, &reply, &release_script, 1, words,
                                         2);
    *ret_deleted = redis_integer(reply) == 1;
    return string_lock_check(lock, status, reply, REPLY_NUMBER);
}

enum lock_status redis_lock_release(struct lock *lock, struct lock_grant *grant)
{
    char server_key[REDIS_KEY_SIZE];
    bool deleted;
    string_lock_key(server_key, grant->key);
    enum lock_status status = delete_mine(lock, LOCK_COMMAND_MS, server_key, grant->token, &deleted);
    if (status == LOCK_OK)
        return deleted ? LOCK_OK : LOCK_LOST;
    /* The reply was lost: run the script again, or the key may stay until its lease ends. A second run is harmless, since
     * the script deletes only our own key. If it finds no key of ours, either the first run deleted it or the lease ended. */
    if (status == LOCK_AWAY && redis_lock_give_back(lock, server_key, grant->token))
        return LOCK_OK;
    return string_lock_explain_lost(lock, server_key, status);
}

bool redis_lock_give_back(struct lock *lock, const char *server_key, const char *token)
{
    char why[sizeof lock->error];
    bool deleted;
    memcpy(why, lock->error, sizeof why);
    (void)delete_mine(lock, LOCK_TRY_MS, server_key, token, &deleted);
    memcpy(lock->error, why, sizeof why);
    return deleted;
}

enum lock_status redis_lock_not_got(struct lock *lock, const char *server_key, const char *token,
                                    enum lock_status status)
{
    if (status == LOCK_AWAY && redis_was_sent(redis_of(lock)))
        (void)redis_lock_give_back(lock, server_key, token); /* else its lease ends it */
    return string_lock_explain(lock, server_key, status);
}

enum lock_status redis_lock_compare(struct lock *lock, const char *server_key, const char *token)
{
    AUTO_REPLY reply = NULL;
    enum lock_status status = redis_command(redis_of(lock), lock, LOCK_COMMAND_MS, &reply, "GET %s",
                                            server_key);
    if (status != LOCK_OK)
        return string_lock_explain_lost(lock, server_key, status);
    return redis_is(reply, token) ? LOCK_OK : LOCK_LOST;
}

enum lock_status redis_lock_still_held(struct lock *lock, const struct lock_grant *grant)
{
    char server_key[REDIS_KEY_SIZE];
    string_lock_key(server_key, grant->key);
    return redis_lock_compare(lock, server_key, grant->token);
}

enum lock_status redis_lock_prolong(struct lock *lock, const char *server_key, const char *token)
{
    AUTO_REPLY reply = NULL;
    char lease[24];
    const char *words[] = {server_key, token, lease};
    snprintf(lease, sizeof lease, "%lld", (long long)lock->lease_ms);
    enum lock_status status = redis_eval(redis_of(lock), lock, LOCK_COMMAND_MS, &reply, &renew_script, 1,
                                         words, 3);
    if (status != LOCK_OK)
        return string_lock_explain_lost(lock, server_key, status);
    return redis_integer(reply) == 1 ? LOCK_OK : LOCK_LOST;
}

enum lock_status redis_lock_renew(struct lock *lock, const struct lock_grant *grant)
{
    char server_key[REDIS_KEY_SIZE];
    string_lock_key(server_key, grant->key);
    return redis_lock_prolong(lock, server_key, grant->token);
}

const struct lock_driver redis_lock = {
    .name = "redis-lock",
    .server = &redis_server,
    .properties = {.mechanism = "SET NX PX with a random value; compared before it is deleted, in a script",
                   .carrier = CARRIER_LEASE,
                   .survives_crash = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART},
    .handle_size = sizeof(struct string_lock),
    .open = string_lock_open,
    .acquire = acquire,
    .release = redis_lock_release,
    .still_held = redis_lock_still_held,
    .renew = redis_lock_renew,
    .close = string_lock_close,
    .lab = &string_lock_lab,
};
