/* Two locks of PostgreSQL that are statements of their own, held until the transaction ends: one on the whole
 * table, one on a number. The read comes after the lock, in a statement with a new snapshot. */
#include "db/stock/stock_impl.h"

#include "db/postgres/statements.h"

static const struct statement ST_LOCK_TABLE = {"lock_table_product", "LOCK TABLE product IN EXCLUSIVE MODE",
                                               0};
static const struct statement ST_ADVISORY_LOCK = {
    "advisory_lock_product", "SELECT pg_advisory_xact_lock(" PRODUCT_KEY("$1::text") ")", 1};

static enum take_status lock_then_take(struct db *db, const struct statement *lock,
                                       const struct stock_want *want, struct stock_taken *ret_taken)
{
    AUTO_RESULT locked = NULL;
    enum db_status status = db_run(db, lock, (const char *const[]){DB_NUMBER(want->product_id)}, &locked);
    if (status != DB_OK)
        return stock_failed(status, ret_taken);
    report_step(want->observer, STEP_LOCK, STEP_NO_VALUE);
    return take_read_write(db, want, ret_taken);
}

enum take_status take_table_lock(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    return lock_then_take(db, &ST_LOCK_TABLE, want, ret_taken);
}

enum take_status take_advisory_lock(struct db *db, const struct stock_want *want,
                                    struct stock_taken *ret_taken)
{
    return lock_then_take(db, &ST_ADVISORY_LOCK, want, ret_taken);
}
