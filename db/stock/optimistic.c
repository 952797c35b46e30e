/* Optimistic: read without a lock, write only where the version is still the one that was read. */
#include "db/stock/stock_impl.h"

static const struct statement ST_WRITE_IF_UNCHANGED = {
    "stock_write_if_unchanged",
    "UPDATE product SET count = $2, version = version + 1, refuse_negative = false,"
    "       updated_at = clock_timestamp(), updated_by = $3 "
    "WHERE id = $1 AND version = $4 RETURNING pg_current_xact_id(), count",
    4};

enum take_status take_optimistic(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    return stock_write(db, &ST_WRITE_IF_UNCHANGED, want, ret_taken->seen - want->quantity, ret_taken->version,
                       ret_taken);
}
