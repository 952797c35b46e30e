/* `redis-registry`: the lock of Spring Integration's RedisLockRegistry. Spring's clients and ours exclude each other.
 *
 * Each process has one client id, which is the value of every key that the process holds: Redis knows which process is the
 * owner, not which thread. So a handle first takes the process gate (lock/process_gate.h), which excludes the other handles of
 * the process and counts how often its holder has taken it; the last release deletes the key. The gate wakes one waiter for each
 * release. A handle that has the gate tries Redis every 100 ms. A release is published, as by Spring, for registries that
 * subscribe to it.
 *
 * What can go wrong: a holder that sleeps for longer than the lease, as with every lease, and a restart of Redis without its data.
 *
 * `redis-registry-shared` is flawed: it leaves the gate out, as two registries with one client id do. The script takes the id for
 * its owner's, so all threads of the process hold the lock at once. */
#include "base/clock.h"
#include "lock/process_gate.h"
#include "lock/redis/lock.h"
#include "lock/registry.h"

#include <stdio.h>
#include <string.h>

enum { POLL_MS = 100 }; /* as in Spring, so that neither side looks more often than the other */

/* If the key is free or the process has it, the process has it for the lease from now on: 1. Else 0. */
static struct redis_script obtain_script = {
    .text = "local owner = redis.call('GET', KEYS[1])"
            " if owner and owner ~= ARGV[1] then return 0 end"
            " redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1",
};
static struct redis_script release_script = {
    .text = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end"
            " redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[2], KEYS[1]) return 1",
};
struct registry_lock {
    struct string_lock plain;
    int64_t lease_end_us; /* of the last grant */
};

static void registry_key(char ret_key[static REDIS_KEY_SIZE], const char *key)
{
    lock_server_key(ret_key, REDIS_KEY_SIZE, "", ":", key);
}

/* Deletes SERVER_KEY if the process has it, and publishes that. *ret_deleted: it was deleted. */
static enum lock_status give_back(struct lock *lock, int64_t limit_ms, const char *server_key, const char *id,
                                  bool *ret_deleted)
{
    AUTO_REPLY reply = NULL;
    char channel[2 * REDIS_KEY_SIZE];
    const char *words[] = {server_key, id, channel};
    lock_server_key(channel, sizeof channel, "", "-channel:", server_key);
    enum lock_status status = redis_eval(redis_of(lock), lock, limit_ms, &reply, &release_script, 1, words,
                                         3);
    *ret_deleted = redis_integer(reply) == 1;
    return string_lock_check(lock, status, reply, REPLY_NUMBER);
}

/* After a lost reply: deletes SERVER_KEY within LOCK_TRY_MS, and keeps lock->error. True if the process had it. */
static bool give_back_after_all(struct lock *lock, const char *server_key, const char *id)
{
    char why[sizeof lock->error];
    bool deleted;
    memcpy(why, lock->error, sizeof why);
    (void)give_back(lock, LOCK_TRY_MS, server_key, id, &deleted); /* else the lease ends it */
    memcpy(lock->error, why, sizeof why);
    return deleted;
}

/* Takes the key in Redis for the process, which may have it already. */
static enum lock_status obtain(struct lock *lock, const char *key, const char *server_key, const char *id,
                               int64_t deadline_us, struct lock_grant *ret_grant)
{
    char lease[24];
    const char *words[] = {server_key, id, lease};
    snprintf(lease, sizeof lease, "%lld", (long long)lock->lease_ms);
    do {
        AUTO_REPLY reply = NULL;
        int64_t asked_us = monotonic_us();
        enum lock_status status = redis_eval(redis_of(lock), lock, lock_command_ms(deadline_us), &reply,
                                             &obtain_script, 1, words, 3);
        status = string_lock_check(lock, status, reply, REPLY_NUMBER);
        if (status != LOCK_OK)
            return string_lock_explain(lock, server_key, status);
        if (redis_integer(reply) == 1) {
            string_lock_grant(lock, key, id, asked_us, ret_grant);
            return LOCK_OK;
        }
    } while (lock_poll_pause(lock, POLL_MS, deadline_us));
    return LOCK_TIMED_OUT;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct registry_lock *own = (struct registry_lock *)lock;
    char server_key[REDIS_KEY_SIZE], id[LOCK_UUID_SIZE];
    unsigned holds;
    registry_key(server_key, key);
    if (!process_gate_client_id(lock, id))
        return lock_fail(lock, LOCK_FAILED, "no randomness");
    enum lock_status status = process_gate_acquire(lock, key, deadline_us, &holds);
    if (status != LOCK_OK)
        return status;
    status = obtain(lock, key, server_key, id, deadline_us, ret_grant);
    if (status == LOCK_OK) {
        own->lease_end_us = ret_grant->lease_end_us;
        return LOCK_OK;
    }
    if (status == LOCK_AWAY && holds == 1 && redis_was_sent(redis_of(lock)))
        (void)give_back_after_all(lock, server_key, id);
    process_gate_release(lock, key);
    return status;
}

/* Releases the key in Redis, not the gate. */
static enum lock_status release_in_redis(struct lock *lock, struct lock_grant *grant)
{
    char server_key[REDIS_KEY_SIZE];
    bool deleted;
    registry_key(server_key, grant->key);
    enum lock_status status = give_back(lock, LOCK_COMMAND_MS, server_key, grant->token, &deleted);
    if (status == LOCK_OK)
        return deleted ? LOCK_OK : LOCK_LOST;
    if (status == LOCK_AWAY && give_back_after_all(lock, server_key, grant->token))
        return LOCK_OK;
    return string_lock_explain_lost(lock, server_key, status);
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    unsigned holds = process_gate_holds(lock, grant->key);
    if (holds == 0)
        return lock_fail(lock, LOCK_NOT_OWNER, "%s is not held here", grant->key);
    enum lock_status status = holds == 1 ? release_in_redis(lock, grant) : LOCK_OK;
    process_gate_release(lock, grant->key);
    return status;
}

static void close_registry(struct lock *lock)
{
    process_gate_abandon(lock, ((struct registry_lock *)lock)->lease_end_us);
    string_lock_close(lock);
}

/* The same without the process gate, so nothing excludes the threads of the process from each other. */
static enum lock_status acquire_shared(struct lock *lock, const char *key, int64_t deadline_us,
                                       struct lock_grant *ret_grant)
{
    char server_key[REDIS_KEY_SIZE], id[LOCK_UUID_SIZE];
    registry_key(server_key, key);
    if (!process_gate_client_id(lock, id))
        return lock_fail(lock, LOCK_FAILED, "no randomness");
    return obtain(lock, key, server_key, id, deadline_us, ret_grant);
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    char server_key[REDIS_KEY_SIZE];
    registry_key(server_key, grant->key);
    return redis_lock_compare(lock, server_key, grant->token);
}

static enum lock_status renew(struct lock *lock, const struct lock_grant *grant)
{
    char server_key[REDIS_KEY_SIZE];
    registry_key(server_key, grant->key);
    return redis_lock_prolong(lock, server_key, grant->token);
}

const struct lock_driver redis_registry = {
    .name = "redis-registry",
    .server = &redis_server,
    .properties = {.mechanism = "a local reentrant lock, then a key with the process's id (Spring)",
                   .reentrant = true,
                   .carrier = CARRIER_LEASE,
                   .survives_crash = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART},
    .handle_size = sizeof(struct registry_lock),
    .open = string_lock_open,
    .acquire = acquire,
    .release = release,
    .still_held = still_held,
    .renew = renew,
    .close = close_registry,
};
const struct lock_driver redis_registry_shared = {
    .name = "redis-registry-shared",
    .server = &redis_server,
    .properties = {.mechanism = "a key with the process's id, and no local lock",
                   .carrier = CARRIER_LEASE,
                   .survives_crash = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART},
    .handle_size = sizeof(struct string_lock),
    .open = string_lock_open,
    .acquire = acquire_shared,
    .release = release_in_redis,
    .still_held = still_held,
    .renew = renew,
    .close = string_lock_close,
};
