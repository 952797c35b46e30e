/* Let the database check: one UPDATE that subtracts only where enough is left. It waits for the row's writers
 * and then looks at the newest version, so nothing that the program read can be out of date. */
#include "db/stock/stock_impl.h"

#include "db/postgres/statements.h"

#include <stdio.h>
#include <stdlib.h>

const struct statement ST_GUARDED = {
    "stock_guarded",
    "UPDATE product SET count = count - $2, version = version + 1, refuse_negative = false,"
    "       updated_at = clock_timestamp(), updated_by = $3 "
    "WHERE id = $1 AND count >= $2 AND stock_kind = 'counter' RETURNING pg_current_xact_id(), count, price, stock_epoch",
    3};

enum take_status take_guarded(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(
        db, &ST_GUARDED,
        (const char *const[]){DB_NUMBER(want->product_id), DB_NUMBER(want->quantity), want->updated_by},
        &row);
    if (status != DB_OK)
        return stock_failed(status, ret_taken);
    if (PQntuples(row) == 0) {
        /* Nothing was taken; a look at the row tells which of the three conditions failed. */
        struct stock_want look = *want;
        look.observer = NULL;
        enum take_status reason = stock_read(db, &ST_STOCK_READ, &look, ret_taken);
        return reason == TAKE_OK ? TAKE_CONFLICT : reason;
    }
    snprintf(ret_taken->xid, sizeof ret_taken->xid, "%s", PQgetvalue(row, 0, 0));
    snprintf(ret_taken->price, sizeof ret_taken->price, "%s", PQgetvalue(row, 0, 2));
    ret_taken->epoch = strtoll(PQgetvalue(row, 0, 3), NULL, 10);
    report_step(want->observer, STEP_TAKE, strtoll(PQgetvalue(row, 0, 1), NULL, 10));
    return TAKE_OK;
}
