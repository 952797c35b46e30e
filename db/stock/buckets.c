/* Takes from a stock that is split over several rows, the buckets. An order takes from a random bucket that has enough for it.
 * If none has, it locks all that have any, in the order of their numbers, and takes from as many as it needs. */
#include "db/stock/stock_impl.h"

#include "db/postgres/statements.h"

#include <string.h>

/* Chosen by the statement's snapshot, without a lock, and checked again by the write, which waits for the row. */
static const struct statement ST_TAKE_FROM_ONE = {
    "stock_take_from_one_bucket",
    "WITH p AS MATERIALIZED (" PRODUCT_AGAINST_RESET "), chosen AS MATERIALIZED ("
    "  SELECT no FROM product_bucket WHERE product_id = (SELECT id FROM p) AND count >= $2"
    "  ORDER BY random() LIMIT 1"
    "), taken AS ("
    "  UPDATE product_bucket SET count = count - $2"
    "  WHERE product_id = (SELECT id FROM p) AND no = (SELECT no FROM chosen) AND count >= $2 RETURNING no"
    ") SELECT price, pg_current_xact_id(), stock_kind, EXISTS (SELECT FROM chosen), EXISTS (SELECT FROM taken) FROM p",
    2};

/* In the order of their numbers, so that no two that sweep wait for each other in a circle. Empty ones stay empty. */
static const struct statement ST_LOCK_BUCKETS = {
    "stock_lock_buckets",
    "SELECT coalesce(sum(count), 0) FROM ("
    "  SELECT count FROM product_bucket WHERE product_id = $1 AND count > 0 ORDER BY no FOR UPDATE) AS held",
    1};

/* From the first that has any, all that is still wanted; all of them are locked. */
static const struct statement ST_TAKE_FROM_SEVERAL = {
    "stock_take_from_several_buckets",
    "WITH share AS ("
    "  SELECT no, least(count, $2 - before) AS part FROM ("
    "    SELECT no, count, sum(count) OVER (ORDER BY no) - count AS before"
    "    FROM product_bucket WHERE product_id = $1 AND count > 0) AS held WHERE before < $2"
    "), taken AS ("
    "  UPDATE product_bucket b SET count = b.count - part FROM share"
    "  WHERE b.product_id = $1 AND b.no = share.no RETURNING part"
    ") SELECT sum(part) = $2 FROM taken",
    2};

static enum take_status sweep(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    const char *const values[] = {DB_NUMBER(want->product_id), DB_NUMBER(want->quantity)};
    AUTO_RESULT held = NULL;
    AUTO_RESULT taken = NULL;
    enum db_status status = db_run(db, &ST_LOCK_BUCKETS, values, &held);
    if (status != DB_OK)
        return stock_failed(status, ret_taken);
    ret_taken->seen = db_cell_number(held, 0, 0);
    report_step(want->observer, STEP_READ, ret_taken->seen);
    if (ret_taken->seen < want->quantity) {
        ret_taken->available = ret_taken->seen;
        return TAKE_SOLD_OUT;
    }
    status = db_run(db, &ST_TAKE_FROM_SEVERAL, values, &taken);
    if (status == DB_OK && strcmp(PQgetvalue(taken, 0, 0), "t") != 0)
        status = DB_ERROR;
    if (status != DB_OK)
        return stock_failed(status, ret_taken);
    report_step(want->observer, STEP_WRITE, ret_taken->seen - want->quantity);
    return TAKE_OK;
}

static enum take_status buckets(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(
        db, &ST_TAKE_FROM_ONE, (const char *const[]){DB_NUMBER(want->product_id), DB_NUMBER(want->quantity)},
        &row);
    if (status != DB_OK)
        return stock_failed(status, ret_taken);
    if (PQntuples(row) == 0)
        return TAKE_NO_PRODUCT;
    if (!stock_is_of_kind(PQgetvalue(row, 0, 2), STOCK_BUCKETS, ret_taken))
        return TAKE_WRONG_KIND;
    stock_note_taken(row, ret_taken);
    bool chosen = strcmp(PQgetvalue(row, 0, 3), "t") == 0;
    bool taken = strcmp(PQgetvalue(row, 0, 4), "t") == 0;
    if (!chosen)
        return sweep(db, want, ret_taken);
    /* Others emptied the chosen one while we waited for it. PostgreSQL has locked it for us all the same, out of the
     * order in which a sweep locks: so the next try begins with nothing held. */
    if (!taken)
        return TAKE_CONFLICT;
    report_step(want->observer, STEP_TAKE, STEP_NO_VALUE);
    return TAKE_OK;
}
const struct stock_policy take_buckets = {
    .take = buckets, .name = "guarded-update-of-one-bucket", .kind = STOCK_BUCKETS};
