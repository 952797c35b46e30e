/* What the explorer does to the locks on one Redis server: leases and places in a queue end when it says so. */
#include "lock/lab.h"
#include "lock/redis/redisson_fair.h"
#include "lock/redis/string_lock.h"

/* ---- locks whose key has the grant's token as its value ------------------------------------------------------ */

/* Only a key with a time to live comes to its end. */
static struct redis_script expire_script = {
    .text = "if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('PTTL', KEYS[1]) < 0 then return 0 end"
            " return redis.call('DEL', KEYS[1])",
};

static enum lock_status expire(struct lock *lock, const struct lock_grant *grant)
{
    AUTO_REPLY reply = NULL;
    char server_key[REDIS_KEY_SIZE];
    const char *words[] = {server_key, grant->token};
    string_lock_key(server_key, grant->key);
    enum lock_status status = redis_eval(redis_of(lock), lock, LOCK_COMMAND_MS, &reply, &expire_script, 1,
                                         words, 2);
    if (status != LOCK_OK)
        return string_lock_explain_lost(lock, server_key, status);
    return redis_integer(reply) == 1 ? LOCK_OK : LOCK_LOST;
}

const struct lock_lab string_lock_lab = {.expire = expire};

/* ---- redis-fair ------------------------------------------------------------------------------------------------ */

static struct redis_script turn_script = {
    .text = REDISSON_FAIR_NAMES REDISSON_FAIR_DROP_DEAD_PLACES
    "return redis.call('exists', lock) == 0 and (not first or first == who) and 1 or 0",
};
static struct redis_script expire_fair_script = {
    .text = REDISSON_FAIR_NAMES
    "if redis.call('hexists', lock, who) == 1 then return redis.call('del', lock) end "
    "return redis.call('zscore', places, who) and redis.call('zadd', places, 'CH', 0, who) or 0",
};

static bool has_turn(struct lock *lock, const struct lock_grant *place)
{
    AUTO_REPLY reply = NULL;
    enum lock_status status = redisson_run((struct redisson_handle *)lock, &turn_script, place->key,
                                           place->token, 0, LOCK_COMMAND_MS, &reply);
    return status == LOCK_OK && redis_integer(reply) == 1;
}

static enum lock_status expire_fair(struct lock *lock, const struct lock_grant *grant)
{
    AUTO_REPLY reply = NULL;
    enum lock_status status = redisson_run((struct redisson_handle *)lock, &expire_fair_script, grant->key,
                                           grant->token, 0, LOCK_COMMAND_MS, &reply);
    return status == LOCK_OK && redis_integer(reply) != 1 ? LOCK_LOST : status;
}

const struct lock_lab redisson_fair_lab = {.expire = expire_fair, .has_turn = has_turn};
