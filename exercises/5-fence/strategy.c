/* Exercise 5: the lease can end before its holder finishes. The product's row has a column fence_redis, which starts at 0: use
 * it to detect a late holder. */
#include "db/stock/stock_impl.h"
#include "service/engine/create_order.h"

/* want->fence.token is the token of the lock's grant: greater than all earlier ones. */
static enum take_status take(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    return stock_write_target(db, want, ret_taken);
}

/* service/engine/strategy.h explains each cell. A cell that is left out is zero: the ordinary case. */
const struct strategy strategies[] = {
    {.name = "mine",
     .guarantee = GUARANTEE_SAFE,
     .take_stock = &(const struct stock_policy){.take = take, .name = "own"},
     .lock = &redis_fenced,
     .span = SPAN_AROUND_TX,
     .fencing = FENCE_ON_WRITE,
     .title = "A lock with a fencing token",
     .why = "Each order has a token, but nothing compares it."},
};

const size_t strategy_count = 1;
