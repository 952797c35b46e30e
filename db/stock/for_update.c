/* SELECT … FOR UPDATE: the row is locked when it is read, until the transaction ends. */
#include "db/stock/stock_impl.h"

#include "db/postgres/statements.h"

/* No snapshot is kept: the read waits for the row's lock and then returns its newest version. */
const struct statement ST_READ_FOR_UPDATE = {
    "stock_read_for_update",
    "SELECT count, price, version, stock_kind, clock_timestamp(), '' AS snapshot, stock_epoch FROM product "
    "WHERE id = $1 FOR UPDATE",
    1};

enum take_status take_for_update(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_READ_FOR_UPDATE, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    return stock_write_target(db, want, ret_taken);
}

enum take_status stock_lock(struct db *db, int64_t product_id, struct stock_taken *ret_taken)
{
    struct stock_want whatever_is_left = {.product_id = product_id, .quantity = INT64_MIN};
    return stock_read(db, &ST_READ_FOR_UPDATE, &whatever_is_left, ret_taken);
}
