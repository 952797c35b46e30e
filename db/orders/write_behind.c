/* What the owner of a stock in Redis asks the database: about its products, and which orders have been written. */
#include "db/orders/write_behind_impl.h"

#include "db/postgres/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* When the tables of this database were created, in microseconds: tells this database from an earlier one. */
#define SHOP                                                                                                 \
    "(SELECT (extract(epoch FROM applied_at) * 1000000)::bigint FROM schema_version WHERE version = 3)"

const struct statement ST_LOCK_PRODUCTS = {"behind_lock_products",
                                           "SELECT id, count, stock_epoch, stock_kind, price, " SHOP
                                           " FROM product WHERE id = ANY ($1::bigint[]) ORDER BY id "
                                           "FOR NO KEY UPDATE",
                                           1};

static const struct statement ST_UNWRITTEN = {
    "behind_unwritten",
    "SELECT count(*), coalesce(sum(quantity), 0)::bigint "
    "FROM unnest($1::bigint[], $2::bigint[]) AS f (id, quantity) WHERE " NOT_WRITTEN,
    2};

static const struct statement ST_REPLACED = {
    "behind_replaced", "SELECT NOT EXISTS (SELECT FROM product WHERE id = $1 AND stock_epoch = $2)", 2};

static const struct statement ST_DRAW_IDS = {
    "behind_draw_ids", "SELECT nextval('orders_id_seq'), " SHOP " FROM generate_series(1, $1::bigint)", 1};

static const struct statement ST_PRODUCTS = {
    "behind_products",
    "SELECT id FROM product WHERE stock_kind = 'redis' AND id > $1 ORDER BY id LIMIT $2::bigint", 2};

int64_t behind_number(const PGresult *rows, int row, int column)
{
    return strtoll(PQgetvalue(rows, row, column), NULL, 10);
}

void product_behind_read(const PGresult *rows, int row, struct product_behind *ret_product)
{
    ret_product->found = true;
    ret_product->count = behind_number(rows, row, 1);
    ret_product->epoch = behind_number(rows, row, 2);
    snprintf(ret_product->kind, sizeof ret_product->kind, "%s", PQgetvalue(rows, row, 3));
    snprintf(ret_product->price, sizeof ret_product->price, "%s", PQgetvalue(rows, row, 4));
    snprintf(ret_product->shop, sizeof ret_product->shop, "%s", PQgetvalue(rows, row, 5));
}

enum db_status product_behind_lock(struct db *db, int64_t product_id, struct product_behind *ret_product)
{
    char array[32];
    AUTO_RESULT rows = NULL;
    *ret_product = (struct product_behind){0};
    snprintf(array, sizeof array, "{%" PRId64 "}", product_id);
    enum db_status status = db_run(db, &ST_LOCK_PRODUCTS, (const char *const[]){array}, &rows);
    if (status == DB_OK && PQntuples(rows) == 1)
        product_behind_read(rows, 0, ret_product);
    return status;
}

bool order_is_outdated(struct db *db, const struct accepted_order *order)
{
    AUTO_RESULT row = NULL;
    return db_ready(db) == DB_OK &&
           db_run(db, &ST_REPLACED,
                  (const char *const[]){DB_NUMBER(order->product_id), DB_NUMBER(order->epoch)},
                  &row) == DB_OK &&
           strcmp(PQgetvalue(row, 0, 0), "t") == 0;
}

enum db_status orders_unwritten(struct db *db, const int64_t *ids, const int64_t *quantities, size_t count,
                                int64_t *ret_orders, int64_t *ret_units)
{
    struct array columns[2];
    const char *values[2];
    AUTO_RESULT row = NULL;
    *ret_orders = *ret_units = 0;
    if (count == 0)
        return DB_OK;
    arrays_begin(columns, 2);
    for (size_t i = 0; i < count; i++) {
        array_add_number(&columns[0], ids[i]);
        array_add_number(&columns[1], quantities[i]);
    }
    enum db_status status = arrays_end(columns, 2, values) ? db_run(db, &ST_UNWRITTEN, values, &row)
                                                           : DB_ERROR;
    arrays_free(columns, 2);
    if (status != DB_OK)
        return status;
    *ret_orders = behind_number(row, 0, 0);
    *ret_units = behind_number(row, 0, 1);
    return DB_OK;
}

enum db_status orders_draw_ids(struct db *db, int64_t *ret_ids, size_t count,
                               char ret_shop[static SHOP_NAME_SIZE])
{
    AUTO_RESULT rows = NULL;
    enum db_status status = db_run(db, &ST_DRAW_IDS, (const char *const[]){DB_NUMBER((int64_t)count)}, &rows);
    if (status == DB_OK && (size_t)PQntuples(rows) != count)
        return DB_ERROR;
    for (size_t i = 0; status == DB_OK && i < count; i++)
        ret_ids[i] = behind_number(rows, (int)i, 0);
    if (status == DB_OK)
        snprintf(ret_shop, SHOP_NAME_SIZE, "%s", PQgetvalue(rows, 0, 1));
    return status;
}

enum db_status products_behind(struct db *db, int64_t after, int64_t *ret_ids, size_t most, size_t *ret_count)
{
    AUTO_RESULT rows = NULL;
    *ret_count = 0;
    enum db_status status = db_run(db, &ST_PRODUCTS,
                                   (const char *const[]){DB_NUMBER(after), DB_NUMBER((int64_t)most)}, &rows);
    for (int i = 0; status == DB_OK && i < PQntuples(rows) && (size_t)i < most; i++)
        ret_ids[(*ret_count)++] = behind_number(rows, i, 0);
    return status;
}
