/* Reading the replies of a Redis server that may not be one: what a lock is told is short, and no more is read. */
#ifndef OVERSELL_LOCK_REDIS_REPLY_H
#define OVERSELL_LOCK_REDIS_REPLY_H

#include <hiredis/hiredis.h>
#include <stdbool.h>

/* Bounds what any reply on CONTEXT, which is new, may cost in memory and time. */
void redis_reply_bound(redisContext *context);

/* Reads what has come. False, with the reason in context->errstr, when the connection is of no more use. */
bool redis_reply_read(redisContext *context);

/* *ret_reply is the next reply that has come whole, the caller's to free, or NULL: read more. False, with the reason in
 * context->errstr, when the connection is of no more use. */
bool redis_reply_next(redisContext *context, redisReply **ret_reply);

#endif
