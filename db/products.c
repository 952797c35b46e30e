/* Products: created, replaced, and reset to a known stock. */
#include "db/products.h"

#include "db/statements.h"

#include <stdio.h>
#include <string.h>

/* Nothing of another process slips in between: orders that take the counter wait for the row, all others for the
 * advisory lock, which they share (PRODUCT_AGAINST_RESET). It comes first, and it is fair: the next orders queue
 * behind us, where a row that is locked by many in turn might never be free. */
static const struct statement ST_LOCK_ORDERS_OUT = {
    "product_lock_orders_out", "SELECT pg_advisory_xact_lock(" PRODUCT_KEY("$1::text") ")", 1};
static const struct statement ST_LOCK_PRODUCT = {"product_lock",
                                                 "SELECT 1 FROM product WHERE id = $1 FOR UPDATE", 1};
/* Both leave the counter at 0: stock_fill sets it where it is the product's stock. */
static const struct statement ST_PUT_PRODUCT = {
    "product_put",
    "INSERT INTO product (id, name, price, count, initial_count, stock_kind, created_by, updated_by)"
    "VALUES ($1::bigint, $2, $3, 0, $4::bigint, $5, $6, $6) "
    "ON CONFLICT (id) DO UPDATE SET name = excluded.name, price = excluded.price, count = 0,"
    "    initial_count = excluded.initial_count + coalesce("
    "        (SELECT sum(purchase_num) FROM order_item WHERE product_id = product.id), 0),"
    "    stock_kind = excluded.stock_kind, version = product.version + 1, refuse_negative = false,"
    "    updated_at = clock_timestamp(), updated_by = excluded.updated_by "
    "RETURNING xmax = 0",
    6};
static const struct statement ST_DELETE_ORDERS = {
    "product_delete_orders",
    "DELETE FROM orders USING order_item i WHERE i.order_id = orders.id AND i.product_id = $1", 1};
static const struct statement ST_RESET_PRODUCT = {
    "product_reset",
    "UPDATE product SET count = 0, initial_count = $2, stock_kind = $3, version = version + 1,"
    "                   refuse_negative = false, updated_at = clock_timestamp(), updated_by = $4 WHERE id = $1",
    4};

/* Runs a step of a transaction whose result is not needed beyond its number of rows. */
static enum db_status run_step(struct db *db, const struct statement *statement, const char *const *values,
                               int *ret_rows)
{
    AUTO_RESULT result = NULL;
    enum db_status status = db_run(db, statement, values, &result);
    if (status == DB_OK && ret_rows)
        *ret_rows = PQntuples(result);
    return status;
}

static enum db_status finish(struct db *db, enum db_status status)
{
    if (status == DB_OK)
        return db_commit(db);
    db_rollback(db);
    return status;
}

/* Opens the transaction and keeps orders out of the product; *ret_found: there is one. */
static enum db_status begin(struct db *db, int64_t id, bool *ret_found)
{
    const char *const values[] = {DB_NUMBER(id)};
    int rows = 0;
    db_begin(db, READ_COMMITTED);
    enum db_status status = run_step(db, &ST_LOCK_ORDERS_OUT, values, NULL);
    if (status == DB_OK)
        status = run_step(db, &ST_LOCK_PRODUCT, values, &rows);
    *ret_found = rows == 1;
    return status;
}

enum db_status products_put(struct db *db, int64_t id, const char *name, const char *price,
                            const struct stock *stock, const char *user, bool *ret_created)
{
    const char *const values[] = {
        DB_NUMBER(id), name, price, DB_NUMBER(stock->units), stock_kinds[stock->kind].name, user};
    bool found = false;
    AUTO_RESULT row = NULL;
    enum db_status status = begin(db, id, &found);
    if (status == DB_OK)
        status = db_run(db, &ST_PUT_PRODUCT, values, &row);
    if (status == DB_OK) {
        *ret_created = strcmp(PQgetvalue(row, 0, 0), "t") == 0;
        status = stock_fill(db, id, stock->kind, stock->units);
    }
    return finish(db, status);
}

enum db_status products_reset(struct db *db, int64_t id, const struct stock *stock, const char *user,
                              bool *ret_found)
{
    const char *const values[] = {DB_NUMBER(id), DB_NUMBER(stock->units), stock_kinds[stock->kind].name,
                                  user};
    enum db_status status = begin(db, id, ret_found);
    if (status == DB_OK && *ret_found)
        status = run_step(db, &ST_DELETE_ORDERS, values, NULL);
    if (status == DB_OK && *ret_found)
        status = run_step(db, &ST_RESET_PRODUCT, values, NULL);
    if (status == DB_OK && *ret_found)
        status = stock_fill(db, id, stock->kind, stock->units);
    return finish(db, status);
}
