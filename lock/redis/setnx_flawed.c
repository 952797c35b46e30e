/* Five flawed locks on one Redis server, as they are often written. The table names the flaw of each.
 *
 *     lock                 it is taken by            it is released by     what is wrong
 *     redis-setnx-forever  SETNX                     DEL                   a holder who dies leaves it behind for ever
 *     redis-setnx          SETNX, then EXPIRE        DEL                   … if it dies between the two
 *     redis-setnx-repair   SETNX, then PEXPIRE       GET, compare, DEL     a waiter repairs that; but when the
 *                                                                          lease ends between GET and DEL, the DEL takes
 *                                                                          the lock from the next holder
 *     redis-del            SET NX PX                 DEL                   … if the lease ends at any time before the DEL:
 *                                                                          A deletes B's lock, and C takes it
 *     redis-get-del        SET NX PX                 GET, compare, DEL     … between GET and DEL: rarer, not gone
 *
 * (redis-setnx has redis-del's flaw as well: its plain DEL.) lock/redis/lock.c is the correct lock. */
#include "base/clock.h"
#include "lock/redis/lock.h"
#include "lock/registry.h"

/* What the five do differently. */
struct way {
    bool at_once;       /* SET NX PX instead of SETNX */
    const char *expire; /* the command that gives the key a time to live after SETNX; NULL: none … */
    int64_t unit_ms;    /* … and the unit that it counts in */
    bool repairs;       /* a waiter gives a key without a time to live one */
    bool compares;      /* asks whose lock it is before it deletes */
};

static const struct way *way_of(const struct lock *lock)
{
    return lock->driver->variant;
}

/* The first command, and often the only one: *ret_taken tells whether the key was absent and is ours now. */
static enum lock_status take(struct lock *lock, const char *server_key, const char *token, int64_t limit_ms,
                             bool *ret_taken)
{
    AUTO_REPLY reply = NULL;
    enum lock_status status;
    if (way_of(lock)->at_once) {
        status = redis_command(redis_of(lock), lock, limit_ms, &reply, "SET %s %s NX PX %lld", server_key,
                               token, (long long)lock->lease_ms);
        *ret_taken = reply && reply->type == REDIS_REPLY_STATUS;
        return string_lock_check(lock, status, reply, REPLY_OK | REPLY_NIL);
    }
    status = redis_command(redis_of(lock), lock, limit_ms, &reply, "SETNX %s %s", server_key, token);
    *ret_taken = redis_integer(reply) == 1;
    if (*ret_taken)
        report_step(lock->observer, STEP_SETNX, STEP_NO_VALUE);
    return string_lock_check(lock, status, reply, REPLY_NUMBER);
}

/* The second command, where there is one: a holder that dies before it leaves a key that never ends. */
static enum lock_status set_expiry(struct lock *lock, const char *server_key, int64_t limit_ms)
{
    AUTO_REPLY reply = NULL;
    const struct way *way = way_of(lock);
    if (!way->expire)
        return LOCK_OK;
    long long lease = (lock->lease_ms + way->unit_ms - 1) / way->unit_ms;
    enum lock_status status = redis_command(redis_of(lock), lock, limit_ms, &reply, way->expire, server_key,
                                            lease);
    status = string_lock_check(lock, status, reply, REPLY_NUMBER);
    if (status == LOCK_OK)
        report_step(lock->observer, STEP_EXPIRE, STEP_NO_VALUE);
    return status;
}

/* Gives a key without a time to live one: its holder may have died between the two commands. */
static enum lock_status repair(struct lock *lock, const char *server_key, int64_t limit_ms)
{
    enum { WITHOUT_END = -1 };
    AUTO_REPLY left = NULL;
    AUTO_REPLY reply = NULL;
    enum lock_status status = redis_command(redis_of(lock), lock, limit_ms, &left, "PTTL %s", server_key);
    status = string_lock_check(lock, status, left, REPLY_NUMBER);
    if (status != LOCK_OK || left->integer != WITHOUT_END)
        return status;
    return redis_command(redis_of(lock), lock, limit_ms, &reply, "PEXPIRE %s %lld", server_key,
                         (long long)lock->lease_ms);
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    char server_key[REDIS_KEY_SIZE], token[LOCK_TOKEN_SIZE];
    int64_t pause_ms = 0;
    string_lock_key(server_key, key);
    if (!lock_random_token(token))
        return lock_fail(lock, LOCK_FAILED, "no randomness");
    do {
        bool taken;
        /* Filled in first: a contender that dies between the two commands has the key already. */
        string_lock_grant(lock, key, token, monotonic_us(), ret_grant);
        enum lock_status status = take(lock, server_key, token, lock_command_ms(deadline_us), &taken);
        if (status == LOCK_OK && taken)
            status = set_expiry(lock, server_key, lock_command_ms(deadline_us));
        else if (status == LOCK_OK && way_of(lock)->repairs)
            status = repair(lock, server_key, lock_command_ms(deadline_us));
        if (status != LOCK_OK && taken) {
            (void)redis_lock_give_back(lock, server_key, token);
            return status;
        }
        if (status != LOCK_OK)
            return redis_lock_not_got(lock, server_key, token, status);
        if (taken)
            return LOCK_OK;
    } while (string_lock_pause(lock, &pause_ms, deadline_us));
    return string_lock_busy(lock, server_key);
}

/* The first half of a release that compares: its answer may be out of date when it arrives. */
static enum lock_status compare(struct lock *lock, const char *server_key, const char *token)
{
    enum lock_status status = redis_lock_compare(lock, server_key, token);
    if (status == LOCK_OK || status == LOCK_LOST)
        report_step(lock->observer, STEP_GET, status == LOCK_OK);
    return status;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    AUTO_REPLY reply = NULL;
    char server_key[REDIS_KEY_SIZE];
    enum lock_status status = LOCK_OK;
    string_lock_key(server_key, grant->key);
    if (way_of(lock)->compares)
        status = compare(lock, server_key, grant->token);
    if (status == LOCK_OK) {
        status = redis_command(redis_of(lock), lock, LOCK_COMMAND_MS, &reply, "DEL %s", server_key);
        status = string_lock_check(lock, status, reply, REPLY_NUMBER);
    }
    if (status == LOCK_AWAY)
        return redis_lock_give_back(lock, server_key, grant->token) ? LOCK_OK : status;
    if (status != LOCK_OK)
        return status;
    report_step(lock->observer, STEP_DEL, redis_integer(reply));
    return redis_integer(reply) == 1 ? LOCK_OK : LOCK_LOST;
}

#define FUNCTIONS                                                                                            \
    .server = &redis_server, .handle_size = sizeof(struct string_lock), .open = string_lock_open,            \
    .acquire = acquire, .release = release, .still_held = redis_lock_still_held, .close = string_lock_close, \
    .lab = &string_lock_lab
#define LEASED .carrier = CARRIER_LEASE, .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART

const struct lock_driver redis_setnx_forever = {
    .name = "redis-setnx-forever",
    .variant = &(const struct way){.at_once = false},
    .properties = {.mechanism = "SETNX without an expiry, plain DEL", .perils = PERIL_RESTART},
    FUNCTIONS,
};
const struct lock_driver redis_setnx = {
    .name = "redis-setnx",
    .variant = &(const struct way){.expire = "EXPIRE %s %lld", .unit_ms = 1000},
    .properties = {.mechanism = "SETNX, then EXPIRE; plain DEL", LEASED},
    FUNCTIONS,
    .renew = redis_lock_renew,
};
const struct lock_driver redis_setnx_repair = {
    .name = "redis-setnx-repair",
    .variant = &(
        const struct way){.expire = "PEXPIRE %s %lld", .unit_ms = 1, .repairs = true, .compares = true},
    .properties = {.mechanism = "SETNX, then PEXPIRE; waiters add a missing expiry; GET, compare, DEL",
                   .survives_crash = true,
                   LEASED},
    FUNCTIONS,
    .renew = redis_lock_renew,
};
const struct lock_driver redis_del = {
    .name = "redis-del",
    .variant = &(const struct way){.at_once = true},
    .properties = {.mechanism = "SET NX PX; plain DEL", .survives_crash = true, LEASED},
    FUNCTIONS,
    .renew = redis_lock_renew,
};
const struct lock_driver redis_get_del = {
    .name = "redis-get-del",
    .variant = &(const struct way){.at_once = true, .compares = true},
    .properties = {.mechanism = "SET NX PX; GET, compare, DEL", .survives_crash = true, LEASED},
    FUNCTIONS,
    .renew = redis_lock_renew,
};
