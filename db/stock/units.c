/* Takes from a stock that is one row for each unit: locks as many rows as are wanted, of those that no other order has locked, and
 * deletes them. No order waits for another, so too few rows may be free while enough are left. */
#include "db/stock/stock_impl.h"

#include "db/postgres/statements.h"

#include <string.h>

/* An order for more than are left locks none, so that it is in nobody's way; that look is saved where one is wanted,
 * because then there is nothing to hold. ORDER BY is for the planner: the index knows which rows are dead, the table
 * does not. */
static const struct statement ST_TAKE_UNITS = {
    "stock_take_units",
    "WITH p AS MATERIALIZED (" PRODUCT_AGAINST_RESET "), unsold AS ("
    "  SELECT count(*) AS n FROM ("
    "    SELECT FROM product_unit WHERE product_id = (SELECT id FROM p) ORDER BY no LIMIT $2) AS first"
    "), picked AS MATERIALIZED ("
    "  SELECT ctid AS place FROM product_unit WHERE product_id = (SELECT id FROM p) ORDER BY no"
    "  LIMIT CASE WHEN $2 = 1 OR (SELECT n FROM unsold) = $2 THEN $2 ELSE 0 END FOR UPDATE SKIP LOCKED"
    "), taken AS ("
    "  DELETE FROM product_unit"
    "  WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND (SELECT count(*) FROM picked) = $2"
    ") SELECT price, pg_current_xact_id(), (SELECT count(*) FROM picked) = $2, stock_epoch FROM p",
    2};

/* A separate statement: it sees what was committed while the first one ran. Units that others hold count. */
static const struct statement ST_LOOK_FOR_UNITS = {
    "stock_look_for_units",
    "SELECT stock_kind, (SELECT count(*) FROM ("
    "    SELECT FROM product_unit WHERE product_id = $1 ORDER BY no LIMIT $2) AS first), stock_epoch "
    "FROM product WHERE id = $1",
    2};

/* Why too few were taken of the stock that was made at EPOCH. */
static enum take_status find_reason(struct db *db, const struct stock_want *want, const char *epoch,
                                    struct stock_taken *ret_taken)
{
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(
        db, &ST_LOOK_FOR_UNITS, (const char *const[]){DB_NUMBER(want->product_id), DB_NUMBER(want->quantity)},
        &row);
    if (status != DB_OK)
        return stock_failed(status, ret_taken);
    if (PQntuples(row) == 0)
        return TAKE_NO_PRODUCT;
    if (!stock_is_of_kind(PQgetvalue(row, 0, 0), STOCK_UNITS, ret_taken))
        return TAKE_WRONG_KIND;
    int64_t left = db_cell_number(row, 0, 1);
    /* Others hold them, or a reset has made them, which the first statement waited for. */
    if (left >= want->quantity)
        return strcmp(PQgetvalue(row, 0, 2), epoch) == 0 ? TAKE_BUSY : TAKE_CONFLICT;
    ret_taken->available = left;
    return TAKE_SOLD_OUT;
}

static enum take_status units(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(
        db, &ST_TAKE_UNITS, (const char *const[]){DB_NUMBER(want->product_id), DB_NUMBER(want->quantity)},
        &row);
    if (status != DB_OK)
        return stock_failed(status, ret_taken);
    if (PQntuples(row) == 0)
        return TAKE_NO_PRODUCT;
    if (strcmp(PQgetvalue(row, 0, 2), "t") != 0)
        return find_reason(db, want, PQgetvalue(row, 0, 3), ret_taken);
    stock_note_taken(row, ret_taken);
    report_step(want->observer, STEP_TAKE, STEP_NO_VALUE);
    return TAKE_OK;
}
const struct stock_policy take_units = {
    .take = units, .name = "delete-units-not-locked", .kind = STOCK_UNITS};
