/* Talking to one Redis server: one connection for each handle, one time limit for each request.
 *
 * URLs: redis://[[user]:password@]host[:port][/database], unix://[[user]:password@]path[?db=N], and rediss://…
 * for TLS, which in a build whose hiredis has none is an error that says what is needed. */
#ifndef OVERSELL_LOCK_REDIS_CLIENT_CONNECTION_H
#define OVERSELL_LOCK_REDIS_CLIENT_CONNECTION_H

#include "lock/lock_driver.h"

#include <hiredis/hiredis.h>

struct redis;

/* A connection to URL (copied, SIZE bytes of it), made when first needed. NULL when out of memory. */
struct redis *redis_new(const char *url, size_t size);
/* For readers of streams: the replies on connections to come may be lists of lists. */
void redis_allow_long_replies(struct redis *redis);
/* REDIS may be NULL. */
void redis_free(struct redis *redis);

/* Sends one command (printf-like: %s for strings, %b for bytes and their length, %lld for numbers, as hiredis has it)
 * and waits for its reply, LIMIT_MS at most. Reconnects before sending where the connection was lost; never sends a
 * command twice. LOCK_OK: *ret_reply is the caller's, and no error reply. LOCK_AWAY: no connection, or no reply — the
 * command may have been done. LOCK_REFUSED: an error reply, such as WRONGTYPE or NOAUTH. Counts the round trip and
 * notes the error in LOCK, which may be NULL. */
enum lock_status redis_command(struct redis *redis, struct lock *lock, int64_t limit_ms,
                               redisReply **ret_reply, const char *format, ...);

/* Did the last request, which got no reply, leave for the server? Then it may have been done. */
bool redis_was_sent(const struct redis *redis);
/* What went wrong last, for who has no struct lock; valid until the next call. */
const char *redis_error(const struct redis *redis);

/* For subscribers, who read what comes when it comes: connects where needed, and lends the connection, which does not
 * block and belongs to REDIS. After an error on it: redis_drop. */
enum lock_status redis_ready(struct redis *redis, struct lock *lock, int64_t limit_ms,
                             redisContext **ret_context);
void redis_drop(struct redis *redis);
/* Sends all of it on that connection before UNTIL; false with errno. */
bool redis_send(struct redis *redis, const char *bytes, size_t size, int64_t until_us);

/* A Lua script, known by its SHA-1: sent whole only where the server does not know it. */
struct redis_script {
    const char *text;
    char sha1[41]; /* filled when first used, by the server's own SCRIPT LOAD */
};
enum { REDIS_WORDS_MAX = 4096 }; /* keys and arguments of one script; more is LOCK_FAILED */
/* EVALSHA, then EVAL where the server has not seen it, with KEY_COUNT keys first in WORDS. */
enum lock_status redis_eval(struct redis *redis, struct lock *lock, int64_t limit_ms, redisReply **ret_reply,
                            struct redis_script *script, int key_count, const char *const *words,
                            int word_count);

/* The reply as a number; -1 where it is none. */
int64_t redis_integer(const redisReply *reply);
/* Is it the string VALUE? */
bool redis_is(const redisReply *reply, const char *value);

static inline void redis_clear_reply(redisReply **reply)
{
    if (*reply)
        freeReplyObject(*reply);
}
#define AUTO_REPLY __attribute__((cleanup(redis_clear_reply))) redisReply *

/* Those of REDLOCK_URLS. */
extern const struct lock_server redlock_servers;

#endif
