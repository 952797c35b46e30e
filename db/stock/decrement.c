/* Check the stock in the program, then subtract in the database: no update is lost, but two orders that both
 * found one left take two. A CHECK on the column turns the second one away. */
#include "db/stock/stock_impl.h"

static const struct statement ST_DECREMENT = {
    "stock_decrement",
    "UPDATE product SET count = count - $2, version = version + 1, refuse_negative = false,"
    "       updated_at = clock_timestamp(), updated_by = $3 "
    "WHERE id = $1 AND stock_epoch = $4 RETURNING pg_current_xact_id(), count",
    4};
static const struct statement ST_DECREMENT_CHECKED = {
    "stock_decrement_checked",
    "UPDATE product SET count = count - $2, version = version + 1, refuse_negative = true,"
    "       updated_at = clock_timestamp(), updated_by = $3 "
    "WHERE id = $1 AND stock_epoch = $4 RETURNING pg_current_xact_id(), count",
    4};

enum take_status take_decrement(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    return stock_write(db, &ST_DECREMENT, want, want->quantity, ret_taken->epoch, ret_taken);
}

enum take_status take_decrement_checked(struct db *db, const struct stock_want *want,
                                        struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    status = stock_write(db, &ST_DECREMENT_CHECKED, want, want->quantity, ret_taken->epoch, ret_taken);
    return status == TAKE_FAILED && ret_taken->db_status == DB_CHECK ? TAKE_SOLD_OUT : status;
}
