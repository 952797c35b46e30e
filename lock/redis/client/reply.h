/* Reads replies of a Redis server within bounds, so that a server that sends nonsense costs neither memory nor time. */
#ifndef OVERSELL_LOCK_REDIS_CLIENT_REPLY_H
#define OVERSELL_LOCK_REDIS_CLIENT_REPLY_H

#include <hiredis/hiredis.h>
#include <stdbool.h>

/* What a reply may be. */
struct redis_bounds {
    unsigned elements; /* of an array; that is, of each */
    size_t bytes;      /* of the whole reply */
    bool nested;       /* arrays in arrays */
};
/* What locks are told: a subscriber three words at once, and nobody else an array. */
extern const struct redis_bounds redis_short_replies;
/* What readers of a stream are told. */
extern const struct redis_bounds redis_long_replies;

/* Bounds what any reply on CONTEXT, which is new, may cost in memory and time; BOUNDS are kept. */
void redis_reply_bound(redisContext *context, const struct redis_bounds *bounds);

/* Reads what has come. False, with the reason in context->errstr, when the connection is of no more use. */
bool redis_reply_read(redisContext *context);

/* *ret_reply is the next reply that has come whole, the caller's to free, or NULL: read more. False, with the reason in
 * context->errstr, when the connection is of no more use. */
bool redis_reply_next(redisContext *context, redisReply **ret_reply);

#endif
