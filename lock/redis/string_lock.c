/* What locks share whose state is one key with a string value on one Redis server. Nothing here is an algorithm. */
#include "lock/redis/string_lock.h"

#include <string.h>

bool string_lock_open(struct lock *lock)
{
    ((struct string_lock *)lock)->redis = redis_new(lock_config.redis_url, strlen(lock_config.redis_url));
    return redis_of(lock);
}

void string_lock_close(struct lock *lock)
{
    redis_free(redis_of(lock));
}

void string_lock_key(char ret_key[static REDIS_KEY_SIZE], const char *key)
{
    lock_server_key(ret_key, REDIS_KEY_SIZE, "", ":lock:", key);
}

void string_lock_grant(const struct lock *lock, const char *key, const char *token, int64_t asked_us,
                       struct lock_grant *ret_grant)
{
    bool leased = lock->driver->properties.carrier == CARRIER_LEASE;
    lock_fill_grant(ret_grant, key, token, leased ? asked_us + lock->lease_ms * 1000 : INT64_MAX);
}

bool string_lock_pause(struct lock *lock, int64_t *pause_ms, int64_t deadline_us)
{
    enum { FIRST_MS = 25, LONGEST_MS = 100 };
    *pause_ms = *pause_ms ? *pause_ms * 2 : FIRST_MS;
    if (*pause_ms > LONGEST_MS)
        *pause_ms = LONGEST_MS;
    return lock_poll_pause(lock, *pause_ms, deadline_us);
}

/* LOCK_REFUSED and its words where something else than a string lies under SERVER_KEY, else STATUS. */
static enum lock_status explain_kind(struct lock *lock, const char *server_key, enum lock_status status)
{
    AUTO_REPLY reply = NULL;
    if (redis_command(redis_of(lock), lock, LOCK_TRY_MS, &reply, "TYPE %s", server_key) != LOCK_OK ||
        !reply || reply->type != REDIS_REPLY_STATUS || !strcmp(reply->str, "string") ||
        !strcmp(reply->str, "none"))
        return status;
    return lock_fail(lock, LOCK_REFUSED, "%s is a %s, where %s keeps a string: another kind of lock?",
                     server_key, reply->str, lock->driver->name);
}

enum lock_status string_lock_busy(struct lock *lock, const char *server_key)
{
    return explain_kind(lock, server_key, LOCK_TIMED_OUT);
}

enum lock_status string_lock_explain(struct lock *lock, const char *server_key, enum lock_status status)
{
    if (status != LOCK_REFUSED || !strstr(lock->error, "WRONGTYPE"))
        return status;
    return explain_kind(lock, server_key, status);
}

enum lock_status string_lock_explain_lost(struct lock *lock, const char *server_key, enum lock_status status)
{
    if (status != LOCK_REFUSED || !strstr(lock->error, "WRONGTYPE"))
        return status;
    (void)explain_kind(lock, server_key, status);
    return LOCK_LOST;
}
