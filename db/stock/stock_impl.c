/* What the stock policies share: reading the row, writing it, and turning a reply into a take_status. */
#include "db/stock/stock_impl.h"

#include "db/postgres/statements.h"

#include <stdio.h>
#include <string.h>

const struct statement ST_STOCK_READ = {
    "stock_read",
    "SELECT count, price, version, stock_kind, clock_timestamp(), pg_current_snapshot(), stock_epoch FROM product "
    "WHERE id = $1",
    1};

const struct statement ST_STOCK_WRITE_TARGET = {
    "stock_write_target",
    "UPDATE product SET count = $2, version = version + 1, refuse_negative = false,"
    "       updated_at = clock_timestamp(), updated_by = $3 "
    "WHERE id = $1 AND stock_epoch = $4 RETURNING pg_current_xact_id(), count",
    4};

/* Strategies that take the stock in the statement, or the script, that also places the order. */
const struct stock_policy take_while_placing = {.name = "own"};
const struct stock_policy take_in_redis = {.name = "own", .kind = STOCK_REDIS};

static const struct statement ST_STOCK_LEFT = {
    "stock_left", "SELECT units_left FROM product_stock WHERE product_id = $1", 1};

enum take_status stock_failed(enum db_status status, struct stock_taken *taken)
{
    taken->db_status = status;
    return TAKE_FAILED;
}

bool stock_is_of_kind(const char *name, enum stock_kind kind, struct stock_taken *taken)
{
    snprintf(taken->kind, sizeof taken->kind, "%s", name);
    return strcmp(name, stock_kinds[kind].name) == 0;
}

void stock_note_taken(const PGresult *row, struct stock_taken *taken)
{
    snprintf(taken->price, sizeof taken->price, "%s", PQgetvalue(row, 0, 0));
    snprintf(taken->xid, sizeof taken->xid, "%s", PQgetvalue(row, 0, 1));
}

enum take_status stock_read(struct db *db, const struct statement *read, const struct stock_want *want,
                            struct stock_taken *ret_taken)
{
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(db, read, (const char *const[]){DB_NUMBER(want->product_id)}, &row);
    if (status != DB_OK)
        return stock_failed(status, ret_taken);
    if (PQntuples(row) == 0)
        return TAKE_NO_PRODUCT;

    ret_taken->seen = db_cell_number(row, 0, 0);
    snprintf(ret_taken->price, sizeof ret_taken->price, "%s", PQgetvalue(row, 0, 1));
    ret_taken->version = db_cell_number(row, 0, 2);
    ret_taken->epoch = db_cell_number(row, 0, 6);
    snprintf(ret_taken->read_at, sizeof ret_taken->read_at, "%s", PQgetvalue(row, 0, 4));
    /* A snapshot names every transaction then running; one that does not fit is left out, never cut. */
    if ((size_t)PQgetlength(row, 0, 5) < sizeof ret_taken->snapshot)
        snprintf(ret_taken->snapshot, sizeof ret_taken->snapshot, "%s", PQgetvalue(row, 0, 5));
    if (PQnfields(row) > 7)
        snprintf(ret_taken->xid, sizeof ret_taken->xid, "%s", PQgetvalue(row, 0, 7));
    report_step(want->observer, STEP_READ, ret_taken->seen);

    if (!stock_is_of_kind(PQgetvalue(row, 0, 3), STOCK_COUNTER, ret_taken))
        return TAKE_WRONG_KIND;
    if (ret_taken->seen < want->quantity) {
        ret_taken->available = ret_taken->seen;
        return TAKE_SOLD_OUT;
    }
    return TAKE_OK;
}

enum take_status stock_write(struct db *db, const struct statement *write, const struct stock_want *want,
                             int64_t value, int64_t guard, struct stock_taken *taken)
{
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(db, write,
                                   (const char *const[]){DB_NUMBER(want->product_id), DB_NUMBER(value),
                                                         want->updated_by, DB_NUMBER(guard),
                                                         DB_NUMBER(taken->epoch)},
                                   &row);
    if (status != DB_OK)
        return stock_failed(status, taken);
    if (PQntuples(row) == 0)
        return TAKE_CONFLICT;
    snprintf(taken->xid, sizeof taken->xid, "%s", PQgetvalue(row, 0, 0));
    report_step(want->observer, STEP_WRITE, db_cell_number(row, 0, 1));
    return TAKE_OK;
}

enum take_status stock_write_target(struct db *db, const struct stock_want *want, struct stock_taken *taken)
{
    return stock_write(db, &ST_STOCK_WRITE_TARGET, want, taken->seen - want->quantity, taken->epoch, taken);
}

enum db_status stock_available(struct db *db, int64_t product_id, int64_t *ret_available)
{
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(db, &ST_STOCK_LEFT, (const char *const[]){DB_NUMBER(product_id)}, &row);
    if (status == DB_OK && PQntuples(row) == 1 && !PQgetisnull(row, 0, 0))
        *ret_available = db_cell_number(row, 0, 0);
    return status;
}
