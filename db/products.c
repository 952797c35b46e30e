/* Products: created, replaced, and reset to a known stock. */
#include "db/products.h"

#include <stdio.h>
#include <string.h>

const char *const stock_kinds[] = {"counter", NULL};

/* The row is locked first, so that no order of another process slips in between the sum and the update. */
static const struct statement ST_LOCK_PRODUCT = {"product_lock",
                                                 "SELECT 1 FROM product WHERE id = $1 FOR UPDATE", 1};
static const struct statement ST_PUT_PRODUCT = {
    "product_put",
    "INSERT INTO product (id, name, price, count, initial_count, created_by, updated_by)"
    "VALUES ($1::bigint, $2, $3, $4::bigint, $4::bigint, $5, $5) "
    "ON CONFLICT (id) DO UPDATE SET name = excluded.name, price = excluded.price, count = excluded.count,"
    "    initial_count = excluded.count + coalesce("
    "        (SELECT sum(purchase_num) FROM order_item WHERE product_id = product.id), 0),"
    "    version = product.version + 1, refuse_negative = false,"
    "    updated_at = clock_timestamp(), updated_by = excluded.updated_by "
    "RETURNING xmax = 0",
    5};
static const struct statement ST_DELETE_ORDERS = {
    "product_delete_orders",
    "DELETE FROM orders USING order_item i WHERE i.order_id = orders.id AND i.product_id = $1", 1};
static const struct statement ST_RESET_PRODUCT = {
    "product_reset",
    "UPDATE product SET count = $2::bigint, initial_count = $2::bigint, stock_kind = $3, version = version + 1,"
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

enum db_status products_put(struct db *db, int64_t id, const char *name, const char *price, int64_t stock,
                            const char *user, bool *ret_created)
{

    db_begin(db, READ_COMMITTED);
    enum db_status status = run_step(db, &ST_LOCK_PRODUCT, (const char *const[]){DB_NUMBER(id)}, NULL);
    if (status != DB_OK)
        return finish(db, status);
    AUTO_RESULT row = NULL;
    status = db_run(db, &ST_PUT_PRODUCT,
                    (const char *const[]){DB_NUMBER(id), name, price, DB_NUMBER(stock), user}, &row);
    if (status == DB_OK)
        *ret_created = strcmp(PQgetvalue(row, 0, 0), "t") == 0;
    return finish(db, status);
}

enum db_status products_reset(struct db *db, int64_t id, int64_t stock, const char *kind, const char *user,
                              bool *ret_found)
{
    const char *const values[] = {DB_NUMBER(id), DB_NUMBER(stock), kind, user};

    db_begin(db, READ_COMMITTED);
    int rows = 0;
    enum db_status status = run_step(db, &ST_LOCK_PRODUCT, values, &rows);
    *ret_found = rows == 1;
    if (status != DB_OK || rows == 0)
        return finish(db, status);
    status = run_step(db, &ST_DELETE_ORDERS, values, NULL);
    if (status == DB_OK)
        status = run_step(db, &ST_RESET_PRODUCT, values, NULL);
    return finish(db, status);
}
