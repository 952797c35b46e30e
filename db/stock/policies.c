/* The stock policies as data: how each is called, and which kind of stock it takes. */
#include "db/stock/stock.h"

const struct stock_policy *stock_policy_of(stock_take_fn *take)
{
    static const struct stock_policy policies[] = {
        {take_read_write, "read-write", STOCK_COUNTER, false},
        {take_decrement, "check-then-decrement", STOCK_COUNTER, false},
        {take_decrement_checked, "check-then-decrement, CHECK (count >= 0)", STOCK_COUNTER, false},
        {take_guarded, "guarded-update", STOCK_COUNTER, false},
        {take_for_update, "select-for-update-then-write", STOCK_COUNTER, false},
        {take_optimistic, "write-if-version-unchanged", STOCK_COUNTER, false},
        {take_table_lock, "lock-table-then-read-write", STOCK_COUNTER, true},
        {take_advisory_lock, "advisory-lock-then-read-write", STOCK_COUNTER, false},
        {take_checked, "read-ask-the-lock-write", STOCK_COUNTER, false},
        {take_fence_on_write, "read-then-write-if-no-newer-fence", STOCK_COUNTER, false},
        {take_fenced, "read-then-write-if-fence-is-ours", STOCK_COUNTER, false},
        {take_units, "delete-units-not-locked", STOCK_UNITS, false},
        {take_buckets, "guarded-update-of-one-bucket", STOCK_BUCKETS, false},
    };
    static const struct stock_policy own = {NULL, "own", STOCK_COUNTER, false};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
        if (policies[i].take == take)
            return &policies[i];
    return &own;
}
