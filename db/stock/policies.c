/* The stock policies as data: how each is called, and which kind of stock it takes. */
#include "db/stock/stock.h"

const struct stock_policy *stock_policy_of(stock_take_fn *take)
{
    static const struct stock_policy policies[] = {
        {take_read_write, "read-write", .kind = STOCK_COUNTER},
        {take_decrement, "check-then-decrement", .seen_is_stale = true},
        {take_decrement_checked, "check-then-decrement, CHECK (count >= 0)", .seen_is_stale = true},
        {take_guarded, "guarded-update", .kind = STOCK_COUNTER},
        {take_for_update, "select-for-update-then-write", .kind = STOCK_COUNTER},
        {take_optimistic, "write-if-version-unchanged", .kind = STOCK_COUNTER},
        {take_table_lock, "lock-table-then-read-write", .locks_all = true},
        {take_advisory_lock, "advisory-lock-then-read-write", .kind = STOCK_COUNTER},
        {take_checked, "read-ask-the-lock-write", .asks_lock = true},
        {take_fence_on_write, "read-then-write-if-no-newer-fence", .kind = STOCK_COUNTER},
        {take_fenced, "read-then-write-if-fence-is-ours", .kind = STOCK_COUNTER},
        {take_units, "delete-units-not-locked", .kind = STOCK_UNITS},
        {take_buckets, "guarded-update-of-one-bucket", .kind = STOCK_BUCKETS},
    };
    static const struct stock_policy own = {NULL, "own", .kind = STOCK_COUNTER};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
        if (policies[i].take == take)
            return &policies[i];
    return &own;
}
