/* Bounds for replies, which hiredis does not have: "*1000000000" makes it ask for eight gigabytes, before any of the
 * elements has come, and walk through them when it gives up; a string grows for as long as there is time. */
#include "lock/redis/client/reply.h"

#include <pthread.h>
#include <stdio.h>

const struct redis_bounds redis_short_replies = {.elements = 8, .bytes = 1 << 16};
const struct redis_bounds redis_long_replies = {.elements = 4096, .bytes = 1 << 24, .nested = true};

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static redisReplyObjectFunctions plain, bounded; /* as hiredis makes replies, and as we let it */

/* NULL, which hiredis takes for "out of memory", where nobody has asked for such an array. */
static void *create_array(const redisReadTask *task, element_count elements)
{
    const struct redis_bounds *bounds = task->privdata;
    bool is_inner = task->parent != NULL;
    bool is_too_long = elements > (element_count)bounds->elements;
    return (is_inner && !bounds->nested) || is_too_long ? NULL : plain.createArray(task, elements);
}

void redis_reply_bound(redisContext *context, const struct redis_bounds *bounds)
{
    pthread_mutex_lock(&mutex);
    if (!plain.createArray) {
        plain = bounded = *context->reader->fn;
        bounded.createArray = create_array;
    }
    pthread_mutex_unlock(&mutex);
    context->reader->fn = &bounded;
    context->reader->privdata = (void *)bounds;
}

static bool is_too_much(redisContext *context)
{
    snprintf(context->errstr, sizeof context->errstr, "more than was asked for, or out of memory");
    return false;
}

bool redis_reply_read(redisContext *context)
{
    /* What has come and is in no reply yet belongs to one. */
    const struct redis_bounds *bounds = context->reader->privdata;
    if (context->reader->len - context->reader->pos > bounds->bytes)
        return is_too_much(context);
    return redisBufferRead(context) == REDIS_OK;
}

bool redis_reply_next(redisContext *context, redisReply **ret_reply)
{
    void *reply = NULL;
    int result = redisGetReplyFromReader(context, &reply);
    *ret_reply = reply;
    if (result == REDIS_OK)
        return true;
    return context->err == REDIS_ERR_OOM && is_too_much(context);
}
