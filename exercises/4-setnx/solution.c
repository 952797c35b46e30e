/* Exercise 4, solved: one command sets the owner and the expiry; one script deletes the key, only for its owner. */
#include "base/clock.h"
#include "lock/redis/lock.h"
#include "lock/registry.h"
#include "service/engine/create_order.h"

/* Redis runs a script as one step. */
static struct redis_script release_script = {
    .text = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"};

/* The explorer stops only at a reported step, so report one after every command:
 * STEP_SETNX, STEP_EXPIRE, STEP_GET, STEP_DEL. */
static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    char server_key[REDIS_KEY_SIZE], token[LOCK_TOKEN_SIZE];
    int64_t pause_ms = 0;
    string_lock_key(server_key, key);
    if (!lock_random_token(token))
        return lock_fail(lock, LOCK_FAILED, "the system has no random numbers");
    do {
        AUTO_REPLY reply = NULL;
        string_lock_grant(lock, key, token, monotonic_us(), ret_grant);
        enum lock_status status = redis_command(redis_of(lock), lock, lock_command_ms(deadline_us), &reply,
                                                "SET %s %s NX PX %lld", server_key, token,
                                                (long long)lock->lease_ms);
        if (status != LOCK_OK)
            return status;
        if (reply && reply->type == REDIS_REPLY_STATUS) /* +OK: the key was set */
            return LOCK_OK;
    } while (string_lock_pause(lock, &pause_ms, deadline_us));
    return LOCK_TIMED_OUT;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    AUTO_REPLY reply = NULL;
    char server_key[REDIS_KEY_SIZE];
    const char *words[] = {server_key, grant->token};
    string_lock_key(server_key, grant->key);
    enum lock_status status = redis_eval(redis_of(lock), lock, LOCK_COMMAND_MS, &reply, &release_script, 1,
                                         words, 2);
    if (status != LOCK_OK)
        return status;
    return redis_integer(reply) == 1 ? LOCK_OK : LOCK_LOST;
}

static const struct lock_driver my_lock = {
    .name = "mine",
    .server = &redis_server,
    .properties = {.mechanism = "a key in Redis",
                   .carrier = CARRIER_LEASE,
                   .perils = PERIL_PAUSE | PERIL_RESTART},
    .handle_size = sizeof(struct string_lock),
    .open = string_lock_open,
    .acquire = acquire,
    .release = release,
    .still_held = redis_lock_still_held, /* is the key's value the grant's token? */
    .renew = redis_lock_renew,
    .close = string_lock_close,
    .lab = &string_lock_lab,
};

/* service/engine/strategy.h explains each cell. A cell that is left out is zero: the ordinary case. */
const struct strategy strategies[] = {
    {.name = "mine",
     .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,
     .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,
     .lock = &my_lock,
     .span = SPAN_AROUND_TX,
     .title = "A key in Redis",
     .why = "One command creates the key with its expiry; one script compares the owner and deletes."},
};

const size_t strategy_count = 1;
