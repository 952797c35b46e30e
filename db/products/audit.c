/* Reads products, orders and the audit as JSON, with one statement each, so that every answer shows one moment. Money is decimal
 * text, because a reader could round a number. */
#include "db/products/audit.h"

#include "db/postgres/statements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRODUCT_COLUMNS                                                                                           \
    "id, name, price::text AS price, units_left AS stock, initial_count AS initial, stock_kind AS kind, version," \
    " fence_redis, fence_zookeeper, fence_etcd, " RFC3339("updated_at") " AS updated_at"

#define PRODUCT_WITH_STOCK "product JOIN product_stock ON product_id = id"

/* SHOWN: the parameter with the product whose receivers are shown; 0: those of all products, -1: of none. */
#define ORDER_COLUMNS(SHOWN)                                                                                 \
    "o.id, i.product_id, i.quantity, o.amount::text AS amount, o.status, i.strategy, i.stock_seen,"          \
    " CASE WHEN " SHOWN "::bigint IN (0, i.product_id) THEN o.receiver_name END AS receiver_name,"           \
    " CASE WHEN " SHOWN                                                                                      \
    "::bigint IN (0, i.product_id) THEN o.receiver_mobile END AS receiver_mobile, " RFC3339(                 \
        "o.created_at") " AS created_at"

static const struct statement ST_PRODUCTS = {
    "view_products",
    "SELECT json_build_object('products', coalesce(json_agg(p), '[]'))"
    "FROM (SELECT " PRODUCT_COLUMNS " FROM " PRODUCT_WITH_STOCK " ORDER BY id LIMIT 1000) p",
    0};

static const struct statement ST_PRODUCT = {
    "view_product",
    "SELECT row_to_json(p) FROM (SELECT " PRODUCT_COLUMNS " FROM " PRODUCT_WITH_STOCK " WHERE id = $1) p", 1};

static const struct statement ST_ORDER = {
    "view_order",
    "SELECT row_to_json(r) FROM ("
    "  SELECT " ORDER_COLUMNS(
        "$2") ", (SELECT coalesce(json_agg(n), '[]') FROM ("
              "      SELECT product_id, purchase_num AS quantity, purchase_price::text AS price, stock_seen, strategy,"
              "             instance, " RFC3339("read_at") " AS read_at, " RFC3339(
                  "t.committed_at") " AS committed_at"
                                    "      FROM order_item JOIN (SELECT order_id, product_id, committed_at FROM order_times) t USING (order_id, product_id)"
                                    "      WHERE order_id = o.id ORDER BY product_id) n) AS items"
                                    "  FROM orders o JOIN order_line i ON i.order_id = o.id WHERE o.id = $1 ORDER BY i.product_id LIMIT 1) r",
    2};

static const struct statement ST_ORDERS = {
    "view_orders",
    "WITH page AS ("
    "  SELECT " ORDER_COLUMNS(
        "$4") " FROM orders o JOIN order_line i ON i.order_id = o.id"
              "  WHERE o.id > $2 AND ($1::bigint = 0 OR i.product_id = $1::bigint) ORDER BY o.id LIMIT $3::bigint"
              ") SELECT json_build_object('orders', coalesce((SELECT json_agg(page) FROM page), '[]'),"
              "    'next', (SELECT max(id) FROM page HAVING count(*) = $3::bigint))",
    4};

/* The witness: two orders that saw the same stock, neither of which could see what the other wrote. The database
 * says so by snapshot and transaction id; where an order's read was not under a lock. The lowest stock seen comes
 * first, because for a check-then-act flaw only the last pairs did harm; 2,000 orders bound the search. $3 to $5 say of a
 * stock that lies elsewhere what is left of it, and how many units and orders are yet to be written here. An order has
 * one item; its amount is looked up by its id, so that the audit of one product never reads the orders of the others. */
static const struct statement ST_AUDIT = {
    "audit_product",
    "WITH p AS (SELECT *, coalesce($3::bigint, units_left) AS here FROM " PRODUCT_WITH_STOCK
    " WHERE id = $1), item AS MATERIALIZED ("
    "  SELECT * FROM order_item WHERE product_id = $1"
    "), s AS (SELECT coalesce(sum(purchase_num), 0)::bigint + $4::bigint AS sold, count(*) + $5::bigint AS orders,"
    "                coalesce(json_agg(DISTINCT strategy), '[]') AS strategies, count(DISTINCT strategy) > 1 AS mixed"
    "         FROM item"
    "), m AS (SELECT coalesce(sum(amount), 0)::text AS amount, count(*) FILTER (WHERE amount <> worth) AS amounts_wrong"
    "         FROM (SELECT purchase_price * purchase_num AS worth,"
    "                      (SELECT amount FROM orders WHERE id = order_id) AS amount FROM item) AS priced"
    "), b AS (SELECT *, greatest(0, sold - initial_count) AS oversold, sold - (initial_count - here) AS drift,"
    "                greatest(0, -here) AS negative FROM p, s"
    "), suspect AS MATERIALIZED ("
    "  SELECT * FROM item WHERE read_snapshot IS NOT NULL ORDER BY stock_seen, order_id LIMIT 2000"
    "), witness AS ("
    "  SELECT a.stock_seen, json_build_array(a.order_id, z.order_id) AS orders"
    "  FROM suspect a JOIN suspect z ON a.stock_seen = z.stock_seen AND a.order_id < z.order_id, b"
    "  WHERE (oversold > 0 OR drift <> 0 OR negative > 0)"
    "    AND NOT pg_visible_in_snapshot(a.stock_xid, z.read_snapshot)"
    "    AND NOT pg_visible_in_snapshot(z.stock_xid, a.read_snapshot)"
    "  ORDER BY a.stock_seen, a.order_id, z.order_id LIMIT 1"
    ") SELECT json_build_object('product_id', id, 'initial', initial_count, 'left', here, 'sold', sold,"
    "    'orders', orders, 'oversold', oversold, 'drift', drift, 'negative', negative,"
    "    'balanced', oversold = 0 AND drift = 0 AND negative = 0, 'mixed', mixed, 'strategies', strategies,"
    "    'in_flight', $2::bigint + $5::bigint, 'kind', stock_kind, 'amount', amount, 'amounts_wrong', amounts_wrong,"
    "    'witness', (SELECT row_to_json(witness) FROM witness)), stock_kind FROM b, m",
    5};

static enum db_status read_json(struct db *db, const struct statement *statement, const char *const *values,
                                char **ret_json)
{
    AUTO_RESULT row = NULL;
    *ret_json = NULL;
    enum db_status status = db_run(db, statement, values, &row);
    if (status != DB_OK || PQntuples(row) == 0)
        return status;
    *ret_json = strdup(PQgetvalue(row, 0, 0));
    return *ret_json ? DB_OK : DB_ERROR;
}

static enum db_status read_json_by_id(struct db *db, const struct statement *statement, int64_t id,
                                      char **ret_json)
{
    return read_json(db, statement, (const char *const[]){DB_NUMBER(id)}, ret_json);
}

enum db_status view_products(struct db *db, char **ret_json)
{
    return read_json(db, &ST_PRODUCTS, NULL, ret_json);
}

enum db_status view_product(struct db *db, int64_t id, char **ret_json)
{
    return read_json_by_id(db, &ST_PRODUCT, id, ret_json);
}

enum db_status view_order(struct db *db, int64_t id, int64_t receivers_of, char **ret_json)
{
    return read_json(db, &ST_ORDER, (const char *const[]){DB_NUMBER(id), DB_NUMBER(receivers_of)}, ret_json);
}

enum db_status view_orders(struct db *db, int64_t product_id, int64_t after, int limit, int64_t receivers_of,
                           char **ret_json)
{
    return read_json(db, &ST_ORDERS,
                     (const char *const[]){DB_NUMBER(product_id), DB_NUMBER(after), DB_NUMBER(limit),
                                           DB_NUMBER(receivers_of)},
                     ret_json);
}

enum db_status audit_product(struct db *db, int64_t product_id, int in_flight,
                             const struct stock_elsewhere *elsewhere, char **ret_json, bool *ret_is_elsewhere)
{
    const struct stock_elsewhere none = {0}, *there = elsewhere ? elsewhere : &none;
    const char *const values[] = {DB_NUMBER(product_id), DB_NUMBER(in_flight),
                                  elsewhere ? DB_NUMBER(there->left) : NULL, DB_NUMBER(there->units_to_come),
                                  DB_NUMBER(there->orders_to_come)};
    AUTO_RESULT row = NULL;
    *ret_json = NULL;
    *ret_is_elsewhere = false;
    enum db_status status = db_run(db, &ST_AUDIT, values, &row);
    if (status != DB_OK || PQntuples(row) == 0)
        return status;
    *ret_is_elsewhere = strcmp(PQgetvalue(row, 0, 1), stock_kinds[STOCK_REDIS].name) == 0;
    *ret_json = strdup(PQgetvalue(row, 0, 0));
    return *ret_json ? DB_OK : DB_ERROR;
}
