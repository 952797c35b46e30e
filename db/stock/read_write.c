/* Read the stock, subtract in the program, write the result: two orders that read the same number lose one
 * of their updates. Whether that can happen is up to the lock around it, or to the isolation level. */
#include "db/stock/stock_impl.h"

enum take_status take_read_write(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    return stock_write_target(db, want, ret_taken);
}
