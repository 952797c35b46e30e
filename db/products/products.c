/* Products: created, replaced, and reset to a known stock. */
#include "db/products/products.h"

#include "db/postgres/statements.h"

#include <string.h>

/* Keeps the orders of all processes out until the transaction ends: orders that take the counter wait for the row, all others for the
 * advisory lock, which they share (PRODUCT_AGAINST_RESET). It comes first, and it is fair: the next orders queue
 * behind us, where a row that is locked by many in turn might never be free. */
static const struct statement ST_LOCK_ORDERS_OUT = {
    "product_lock_orders_out", "SELECT pg_advisory_xact_lock(" PRODUCT_KEY("$1::text") ")", 1};
static const struct statement ST_LOCK_PRODUCT = {"product_lock",
                                                 "SELECT stock_kind, stock_epoch FROM product WHERE id = $1 "
                                                 "FOR UPDATE",
                                                 1};
/* A stock's epoch is the time of its making in microseconds, and grows always. An order that read the stock before writes
 * only while the epoch is still the same. */
#define NEW_EPOCH                                                                                            \
    "greatest(product.stock_epoch + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"
/* Both leave the counter at 0: stock_fill sets it where it is the product's stock. A stock that stays in Redis keeps its
 * epoch at a PUT: the orders that were accepted there and are yet to be written take their units from the new one. */
static const struct statement ST_PUT_PRODUCT = {
    "product_put",
    "INSERT INTO product (id, name, price, count, initial_count, stock_kind, created_by, updated_by)"
    "VALUES ($1::bigint, $2, $3, 0, $4::bigint, $5, $6, $6) "
    "ON CONFLICT (id) DO UPDATE SET name = excluded.name, price = excluded.price, count = 0,"
    "    initial_count = excluded.initial_count + coalesce("
    "        (SELECT sum(purchase_num) FROM order_item WHERE product_id = product.id), 0),"
    "    stock_epoch = CASE WHEN product.stock_kind = 'redis' AND excluded.stock_kind = 'redis'"
    "                       THEN product.stock_epoch ELSE " NEW_EPOCH " END,"
    "    stock_kind = excluded.stock_kind, version = product.version + 1, refuse_negative = false,"
    "    updated_at = clock_timestamp(), updated_by = excluded.updated_by "
    "RETURNING xmax = 0",
    6};
/* No join, which would be planned, where the tables were taken for empty, as each with each. */
static const struct statement ST_DELETE_ORDERS = {
    "product_delete_orders",
    "DELETE FROM orders WHERE id = ANY (ARRAY(SELECT order_id FROM order_item WHERE product_id = $1))", 1};
static const struct statement ST_DELETE_REJECTED = {
    "product_delete_rejected",
    "DELETE FROM orders WHERE id = ANY (ARRAY(SELECT order_id FROM order_rejected WHERE product_id = $1))",
    1};
static const struct statement ST_RESET_PRODUCT = {
    "product_reset",
    "UPDATE product SET count = 0, initial_count = $2, stock_kind = $3, version = version + 1,"
    "                   stock_epoch = " NEW_EPOCH ","
    "                   refuse_negative = false, updated_at = clock_timestamp(), updated_by = $4 WHERE id = $1",
    4};

static enum db_status finish(struct db *db, enum db_status status, enum product_change change)
{
    if (status == DB_OK && (change == PRODUCT_CHANGED || change == PRODUCT_CREATED))
        return db_commit(db);
    db_rollback(db);
    return status;
}

static enum db_status run_step(struct db *db, const struct statement *statement, const char *const *values)
{
    AUTO_RESULT result = NULL;
    return db_run(db, statement, values, &result);
}

/* A product as it was before. */
struct before {
    bool found, in_redis;
    int64_t epoch;
};

/* Opens the transaction and keeps orders out of the product. */
static enum db_status begin_change(struct db *db, int64_t id, struct before *ret_before)
{
    const char *const values[] = {DB_NUMBER(id)};
    AUTO_RESULT row = NULL;
    *ret_before = (struct before){0};
    db_begin(db, DB_READ_COMMITTED);
    enum db_status status = run_step(db, &ST_LOCK_ORDERS_OUT, values);
    if (status == DB_OK)
        status = db_run(db, &ST_LOCK_PRODUCT, values, &row);
    if (status == DB_OK && PQntuples(row) == 1) {
        ret_before->found = true;
        ret_before->in_redis = strcmp(PQgetvalue(row, 0, 0), stock_kinds[STOCK_REDIS].name) == 0;
        ret_before->epoch = db_cell_number(row, 0, 1);
    }
    return status;
}

enum db_status products_put(struct db *db, int64_t id, const char *name, const char *price,
                            const struct stock *stock, const char *user, struct stock_keeper *keeper,
                            enum product_change *ret_change)
{
    struct before before;
    int64_t to_come = 0; /* units of orders that are taken already, and will take them from the new stock */
    enum db_status status = begin_change(db, id, &before);
    *ret_change = before.found ? PRODUCT_CHANGED : PRODUCT_CREATED;
    if (status == DB_OK && (before.in_redis || stock->kind == STOCK_REDIS)) {
        if (!keeper->forget(keeper, id, before.epoch, &to_come))
            *ret_change = PRODUCT_KEPT;
        else if (to_come > 0 && stock->kind != STOCK_REDIS)
            *ret_change = PRODUCT_AWAITED;
    }
    if (status != DB_OK || *ret_change > PRODUCT_CREATED)
        return finish(db, status, *ret_change);

    const char *const values[] = {
        DB_NUMBER(id), name, price, DB_NUMBER(stock->units + to_come), stock_kinds[stock->kind].name, user};
    AUTO_RESULT row = NULL;
    status = db_run(db, &ST_PUT_PRODUCT, values, &row);
    if (status == DB_OK) {
        *ret_change = strcmp(PQgetvalue(row, 0, 0), "t") == 0 ? PRODUCT_CREATED : PRODUCT_CHANGED;
        status = stock_fill(db, id, stock->kind, stock->units + to_come);
    }
    return finish(db, status, *ret_change);
}

enum db_status products_reset(struct db *db, int64_t id, const struct stock *stock, const char *user,
                              struct stock_keeper *keeper, enum product_change *ret_change)
{
    const char *const values[] = {DB_NUMBER(id), DB_NUMBER(stock->units), stock_kinds[stock->kind].name,
                                  user};
    static const struct statement *const steps[] = {&ST_DELETE_ORDERS, &ST_DELETE_REJECTED,
                                                    &ST_RESET_PRODUCT};
    struct before before;
    int64_t to_come = 0;
    enum db_status status = begin_change(db, id, &before);
    *ret_change = before.found ? PRODUCT_CHANGED : PRODUCT_MISSING;
    if (status == DB_OK && before.found && (before.in_redis || stock->kind == STOCK_REDIS) &&
        !keeper->forget(keeper, id, before.epoch, &to_come))
        *ret_change = PRODUCT_KEPT;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && *ret_change == PRODUCT_CHANGED; i++)
        if (status == DB_OK)
            status = run_step(db, steps[i], values);
    if (status == DB_OK && *ret_change == PRODUCT_CHANGED)
        status = stock_fill(db, id, stock->kind, stock->units);
    return finish(db, status, *ret_change);
}
