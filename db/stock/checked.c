/* Read, ask the lock whether it is still ours, then write: the window between the question and the write is small,
 * and it is still a window. */
#include "db/stock/stock_impl.h"

enum take_status take_checked(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    bool still_held = want->still_held(want->holder);
    report_step(want->observer, STEP_CHECK, still_held);
    if (!still_held)
        return TAKE_LOCK_LOST;
    return stock_write_target(db, want, ret_taken);
}
