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

/* clang-format off */
const struct strategy strategies[] = {
    /* name   guarantee          shown by        span       lock            fence     transactions
        isolation       taking of the stock  tries, way of placing, title, why */
    {"mine",  GUARANTEE_SAFE,              SHOWN_BY_NOTHING,        SPAN_AROUND_TX, &redis_fenced,  FENCE_ON_WRITE, SCOPE_ONE_TX,
        DB_READ_COMMITTED, take,                1, place_by_steps, COMBINE_NONE, "A lock with a fencing token",
        "The token is there, and nobody looks at it."},
};
/* clang-format on */

const size_t strategy_count = 1;
