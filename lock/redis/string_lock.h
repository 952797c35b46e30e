/* What locks share whose state is one key with a string value on one Redis server: the handle, the key's name, the pause
 * between tries, and errors in words. One thread at a time for each handle. */
#ifndef OVERSELL_LOCK_REDIS_STRING_LOCK_H
#define OVERSELL_LOCK_REDIS_STRING_LOCK_H

#include "lock/redis/client/connection.h"

/* The head of every such lock's own struct. */
struct string_lock {
    struct lock base;
    struct redis *redis;
};

static inline struct redis *redis_of(struct lock *lock)
{
    return ((struct string_lock *)lock)->redis;
}

/* How the explorer ends the lease of such a lock: lab.c. */
extern const struct lock_lab string_lock_lab;

/* As in struct lock_driver. */
bool string_lock_open(struct lock *lock);
void string_lock_close(struct lock *lock);

/* STATUS of a request whose reply must be of one of TYPES. Another reply is as good as none, and the connection is no
 * longer to be trusted: then LOCK_AWAY. */
static inline enum lock_status string_lock_check(struct lock *lock, enum lock_status status,
                                                 const redisReply *reply, unsigned types)
{
    if (status != LOCK_OK)
        return status;
    if (reply && (types & 1u << reply->type))
        return LOCK_OK;
    redis_drop(redis_of(lock));
    (void)lock_fail(lock, LOCK_AWAY, "redis sent a reply to something else than was asked");
    return LOCK_AWAY;
}
#define REPLY_NUMBER (1u << REDIS_REPLY_INTEGER)
#define REPLY_STRING (1u << REDIS_REPLY_STRING)
#define REPLY_OK (1u << REDIS_REPLY_STATUS)
#define REPLY_NIL (1u << REDIS_REPLY_NIL)

enum { REDIS_KEY_SIZE = 160 };
/* The name of KEY's key in Redis: "oversell:lock:product:1". */
void string_lock_key(char ret_key[static REDIS_KEY_SIZE], const char *key);

/* Fills in a grant of KEY. Its lease is counted from ASKED_US (monotonic_us()), before the request was sent, so that it never
 * ends later here than on the server. */
void string_lock_grant(const struct lock *lock, const char *key, const char *token, int64_t asked_us,
                       struct lock_grant *ret_grant);

/* The pause before the next try: 25 ms, then 50, then 100. False when the deadline has come.
 * An order holds its lock for a few milliseconds, so the first tries come soon. An order that still waits has a long queue
 * or a dead holder before it, and a hundred waiting orders must not send the server thousands of requests a second. */
bool string_lock_pause(struct lock *lock, int64_t *pause_ms, int64_t deadline_us);

/* The status of a lock that was not got in time: LOCK_TIMED_OUT, or LOCK_REFUSED with the words where no string lies under
 * SERVER_KEY: SET NX cannot distinguish Redisson's hash from a string lock, and would wait for ever. */
enum lock_status string_lock_busy(struct lock *lock, const char *server_key);

/* STATUS of a request about SERVER_KEY; a WRONGTYPE is put in words. */
enum lock_status string_lock_explain(struct lock *lock, const char *server_key, enum lock_status status);
/* The same where the grant was ours: what lies there now is somebody else's, so a WRONGTYPE is LOCK_LOST. */
enum lock_status string_lock_explain_lost(struct lock *lock, const char *server_key, enum lock_status status);

#endif
