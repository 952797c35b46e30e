/* Exercise 5, solved: the engine registers the token before the read (FENCE_BEFORE_READ: UPDATE product SET fence_redis = $2
 * WHERE id = $1 AND fence_redis < $2, committed at once), and the write succeeds only if it is still the newest. */
#include "db/stock/stock_impl.h"
#include "service/engine/create_order.h"

/* stock_write's $4 is the token. $5 identifies the stock that was read: a reset has no token, but makes a new stock. */
static const struct statement ST_WRITE = {
    "mine_write",
    "UPDATE product SET count = $2, version = version + 1, updated_at = clock_timestamp(), updated_by = $3 "
    "WHERE id = $1 AND fence_redis = $4 AND stock_epoch = $5 RETURNING pg_current_xact_id(), count",
    5};

/* want->fence.token is the token of the lock's grant: greater than all earlier ones. */
static enum take_status take(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    status = stock_write(db, &ST_WRITE, want, ret_taken->seen - want->quantity, want->fence.token, ret_taken);
    return status == TAKE_CONFLICT ? TAKE_LOCK_LOST
                                   : status; /* a newer holder has registered, or the stock was reset */
}

/* service/engine/strategy.h explains each cell. A cell that is left out is zero: the ordinary case. */
const struct strategy strategies[] = {
    {.name = "mine",
     .guarantee = GUARANTEE_SAFE,
     .take_stock = &(const struct stock_policy){.take = take, .name = "own"},
     .lock = &redis_fenced,
     .span = SPAN_AROUND_TX,
     .fencing = FENCE_BEFORE_READ,
     .title = "A lock with a fencing token",
     .why = "Only the newest holder can write, so what it has read cannot change before its write."},
};

const size_t strategy_count = 1;
