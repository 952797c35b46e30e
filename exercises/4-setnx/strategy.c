/* Exercise 4: a lock that is a key in Redis. Which order owns it, for how long, and which order may delete it? */
#include "base/clock.h"
#include "lock/redis/lock.h"
#include "lock/registry.h"
#include "service/engine/create_order.h"

/* The explorer stops only at a reported step, so report one after every command:
 * STEP_SETNX, STEP_EXPIRE, STEP_GET, STEP_DEL. */
static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    char server_key[REDIS_KEY_SIZE];
    int64_t pause_ms = 0;
    string_lock_key(server_key, key);
    do {
        AUTO_REPLY reply = NULL;
        string_lock_grant(lock, key, "locked", monotonic_us(), ret_grant); /* before the first step */
        enum lock_status status = redis_command(redis_of(lock), lock, lock_command_ms(deadline_us), &reply,
                                                "SETNX %s %s", server_key, ret_grant->token);
        if (status != LOCK_OK)
            return status;
        if (redis_integer(reply) == 1) { /* the key was absent, and is ours now */
            report_step(lock->observer, STEP_SETNX, STEP_NO_VALUE);
            return LOCK_OK;
        }
    } while (string_lock_pause(lock, &pause_ms, deadline_us));
    return LOCK_TIMED_OUT;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    AUTO_REPLY reply = NULL;
    char server_key[REDIS_KEY_SIZE];
    string_lock_key(server_key, grant->key);
    enum lock_status status = redis_command(redis_of(lock), lock, LOCK_COMMAND_MS, &reply, "DEL %s",
                                            server_key);
    report_step(lock->observer, STEP_DEL, STEP_NO_VALUE);
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
     .why = "SETNX creates the key if there is none, and DEL deletes it."},
};

const size_t strategy_count = 1;
