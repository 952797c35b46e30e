/* Read, ask the lock whether it is still ours, then write: the window between the question and the write is small,
 * and it is still a window. */
#include "db/stock_impl.h"

enum take_status take_checked(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    if (!want->still_held(want->holder))
        return TAKE_LOCK_LOST;
    report_step(want->observer, STEP_CHECK, STEP_NO_VALUE);
    return stock_write_target(db, want, ret_taken);
}
