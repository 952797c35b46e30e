/* Ways to take units from a stock that is one number, product.count. Compare them: each reads, checks and writes, and they
 * differ in who checks, and in what keeps another order out between the check and the write. */
#include "db/stock/stock_impl.h"

#include "db/postgres/statements.h"

#include <stdio.h>

/* ---- read, subtract in the program, write ---------------------------------------------------------------- */

/* Two orders that read the same number lose one of their updates. Only a lock around this, or the isolation level,
 * prevents that. */
static enum take_status read_write(struct db *db, const struct stock_want *want,
                                   struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    return stock_write_target(db, want, ret_taken);
}
const struct stock_policy take_read_write = {
    .take = read_write, .name = "read-write", .locks_at = STEP_WRITE};

/* The same, but asks the lock before it writes whether it is still held. The time between the question and the write is
 * short, but an order of the next holder fits into it. */
static enum take_status checked(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
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
const struct stock_policy take_checked = {
    .take = checked, .name = "read-ask-the-lock-write", .locks_at = STEP_WRITE, .asks_lock = true};

/* ---- check in the program, subtract in the database ------------------------------------------------------ */

/* No update is lost, but two orders that both read 1 take two. A CHECK on the column (refuse_negative) refuses the second. */
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

static enum take_status decrement(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    return stock_write(db, &ST_DECREMENT, want, want->quantity, ret_taken->epoch, ret_taken);
}
const struct stock_policy take_decrement = {
    .take = decrement, .name = "check-then-decrement", .locks_at = STEP_WRITE, .seen_is_stale = true};

static enum take_status decrement_checked(struct db *db, const struct stock_want *want,
                                          struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    status = stock_write(db, &ST_DECREMENT_CHECKED, want, want->quantity, ret_taken->epoch, ret_taken);
    return status == TAKE_FAILED && ret_taken->db_status == DB_CHECK ? TAKE_SOLD_OUT : status;
}
const struct stock_policy take_decrement_checked = {.take = decrement_checked,
                                                    .name = "check-then-decrement, CHECK (count >= 0)",
                                                    .locks_at = STEP_WRITE,
                                                    .seen_is_stale = true};

/* ---- one UPDATE that subtracts only where enough is left ------------------------------------------------- */

/* The database checks. The UPDATE waits for the row's writers and then looks at the newest version of the row, so that
 * nothing the program read can be out of date. */
const struct statement ST_GUARDED = {
    "stock_guarded",
    "UPDATE product SET count = count - $2, version = version + 1, refuse_negative = false,"
    "       updated_at = clock_timestamp(), updated_by = $3 "
    "WHERE id = $1 AND count >= $2 AND stock_kind = 'counter' RETURNING pg_current_xact_id(), count, price, stock_epoch",
    3};

static enum take_status guarded(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
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
    ret_taken->epoch = db_cell_number(row, 0, 3);
    report_step(want->observer, STEP_TAKE, db_cell_number(row, 0, 1));
    return TAKE_OK;
}
const struct stock_policy take_guarded = {.take = guarded, .name = "guarded-update", .locks_at = STEP_TAKE};

/* ---- read, and write only the version that was read ------------------------------------------------------ */

/* Optimistic: no lock. An order that was overtaken finds no row to write, and tries again. */
static const struct statement ST_WRITE_IF_UNCHANGED = {
    "stock_write_if_unchanged",
    "UPDATE product SET count = $2, version = version + 1, refuse_negative = false,"
    "       updated_at = clock_timestamp(), updated_by = $3 "
    "WHERE id = $1 AND version = $4 RETURNING pg_current_xact_id(), count",
    4};

static enum take_status optimistic(struct db *db, const struct stock_want *want,
                                   struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    return stock_write(db, &ST_WRITE_IF_UNCHANGED, want, ret_taken->seen - want->quantity, ret_taken->version,
                       ret_taken);
}
const struct stock_policy take_optimistic = {
    .take = optimistic, .name = "write-if-version-unchanged", .locks_at = STEP_WRITE};

/* ---- SELECT … FOR UPDATE, then write --------------------------------------------------------------------- */

/* The read waits for the row's lock, returns the newest version of the row, and keeps the lock until the transaction ends.
 * A snapshot would say nothing about such a read, so none is stored. */
const struct statement ST_READ_FOR_UPDATE = {
    "stock_read_for_update",
    "SELECT count, price, version, stock_kind, clock_timestamp(), '' AS snapshot, stock_epoch, pg_current_xact_id() "
    "FROM product WHERE id = $1 FOR UPDATE",
    1};

static void note_written(void *context, const PGresult *row)
{
    if (PQntuples(row) == 1)
        report_step(context, STEP_WRITE, db_cell_number(row, 0, 1));
}

/* The row is locked, so the write cannot fail to find it as it was read, and nothing depends on its result. */
static enum take_status write_later(struct db *db, const struct stock_want *want, struct stock_taken *taken)
{
    enum db_status status = db_run_later(db, &ST_STOCK_WRITE_TARGET,
                                         (const char *const[]){DB_NUMBER(want->product_id),
                                                               DB_NUMBER(taken->seen - want->quantity),
                                                               want->updated_by, DB_NUMBER(taken->epoch)},
                                         note_written, want->observer);
    return status == DB_OK ? TAKE_OK : stock_failed(status, taken);
}

static enum take_status for_update(struct db *db, const struct stock_want *want,
                                   struct stock_taken *ret_taken)
{
    enum take_status status = stock_read(db, &ST_READ_FOR_UPDATE, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    return want->later ? write_later(db, want, ret_taken) : stock_write_target(db, want, ret_taken);
}
const struct stock_policy take_for_update = {
    .take = for_update, .name = "select-for-update-then-write", .locks_at = STEP_READ};

enum take_status stock_lock(struct db *db, int64_t product_id, struct stock_taken *ret_taken)
{
    struct stock_want whatever_is_left = {.product_id = product_id, .quantity = INT64_MIN};
    return stock_read(db, &ST_READ_FOR_UPDATE, &whatever_is_left, ret_taken);
}

/* ---- a lock of PostgreSQL, then read and write ----------------------------------------------------------- */

/* A statement takes the lock, on the whole table or on a number, until the transaction ends. The read comes after it,
 * in a statement with a new snapshot. */
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
    return read_write(db, want, ret_taken);
}

static enum take_status table_lock(struct db *db, const struct stock_want *want,
                                   struct stock_taken *ret_taken)
{
    return lock_then_take(db, &ST_LOCK_TABLE, want, ret_taken);
}
const struct stock_policy take_table_lock = {
    .take = table_lock, .name = "lock-table-then-read-write", .locks_at = STEP_LOCK, .locks_all = true};

static enum take_status advisory_lock(struct db *db, const struct stock_want *want,
                                      struct stock_taken *ret_taken)
{
    return lock_then_take(db, &ST_ADVISORY_LOCK, want, ret_taken);
}
const struct stock_policy take_advisory_lock = {
    .take = advisory_lock, .name = "advisory-lock-then-read-write", .locks_at = STEP_LOCK};

/* ---- giving units back ----------------------------------------------------------------------------------- */

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
