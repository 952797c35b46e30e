/* Exercise 5: the lock's lease can end under its holder. The product's row has a column fence_redis, 0 at first: who was
 * too slow can be found out there. */
#include "db/stock/stock_impl.h"
#include "service/engine/create_order.h"

/* want->fence.token is the token that came with the lock: each is greater than all before it. */
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
     .why = "The token is there, and nobody looks at it."},
};

const size_t strategy_count = 1;
