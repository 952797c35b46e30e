/* Gives units back to the counter that they were taken from. */
#include "db/stock/stock.h"

#include <stdio.h>

/* After a reset or a PUT there is another stock, and nothing is to be given back. */
static const struct statement ST_GIVE_BACK = {
    "stock_give_back",
    "UPDATE product SET count = count + $2, version = version + 1, updated_at = clock_timestamp(), updated_by = $3 "
    "WHERE id = $1 AND stock_epoch = $4 RETURNING pg_current_xact_id()",
    4};

enum db_status stock_give_back(struct db *db, int64_t product_id, int64_t epoch, int64_t quantity,
                               const char *updated_by, char ret_xid[static 24])
{
    AUTO_RESULT row = NULL;
    ret_xid[0] = '\0';
    enum db_status status = db_ready(db);
    if (status != DB_OK)
        return status;
    db_begin(db, DB_READ_COMMITTED);
    status = db_run(
        db, &ST_GIVE_BACK,
        (const char *const[]){DB_NUMBER(product_id), DB_NUMBER(quantity), updated_by, DB_NUMBER(epoch)},
        &row);
    if (status != DB_OK || PQntuples(row) == 0) {
        db_rollback(db);
        return status;
    }
    snprintf(ret_xid, 24, "%s", PQgetvalue(row, 0, 0));
    return db_commit(db);
}
