/* What the files redis_stock.c, redis_stock_take.c and redis_stream.c share: the connection, keys and reply checks. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_REDIS_STOCK_IMPL_H
#define OVERSELL_SERVICE_WRITE_BEHIND_REDIS_STOCK_IMPL_H

#include "lock/redis/client/connection.h"
#include "service/write_behind/redis_stock.h"

enum { STOCK_KEY_SIZE = 340 }; /* the longest name: an order-key with an Idempotency-Key of 255 */

struct redis_stock {
    struct redis *redis;
    struct lock base; /* counts the round trips and notes errors; there is no lock */
    char stream[64], accepted[64];
};

/* In a script whose ARGV[4] is the shop: what a stock that may be taken has as `checked`. */
#define CHECKED "(string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. ' ' .. ARGV[4])"

/* "oversell:KIND:NAME" */
void stock_key(char ret_key[static STOCK_KEY_SIZE], const char *kind, const char *name);
void stock_number(char ret_text[static 24], int64_t number);

/* STATUS, where the reply is of TYPE; any other reply is no reply, and its connection not to be trusted any more. */
enum lock_status stock_check(struct redis_stock *stock, enum lock_status status, const redisReply *reply,
                             int type);

#endif
