/* Products, orders and the audit of a product as JSON, which PostgreSQL itself makes. On the thread that uses DB. */
#ifndef OVERSELL_DB_PRODUCTS_AUDIT_H
#define OVERSELL_DB_PRODUCTS_AUDIT_H

#include "db/stock/kinds.h"

/* Each returns malloc'ed JSON text in *ret_json, the caller's to free, or NULL there when there is no such row. */

/* {"products":[…]} */
enum db_status view_products(struct db *db, char **ret_json);
enum db_status view_product(struct db *db, int64_t id, char **ret_json);
/* RECEIVERS_OF: a product's id, or one of these. Only that product's orders show the receiver's name and mobile; in all other
 * orders both are null. */
enum { RECEIVERS_OF_ALL = 0, RECEIVERS_OF_NONE = -1 };
/* One order with its items. */
enum db_status view_order(struct db *db, int64_t id, int64_t receivers_of, char **ret_json);
/* {"orders":[…],"next":ID or null}: by id, those after AFTER, LIMIT at most; PRODUCT_ID 0 for all products. */
enum db_status view_orders(struct db *db, int64_t product_id, int64_t after, int limit, int64_t receivers_of,
                           char **ret_json);
/* A stock that is not in PostgreSQL. */
struct stock_elsewhere {
    int64_t left;
    int64_t units_to_come, orders_to_come; /* of orders that took from it and are not in PostgreSQL yet */
};

/* The audit of one product: its stock, its orders and whether they agree, with a witness (two orders that saw the same stock)
 * if too much was sold or an update was lost. IN_FLIGHT: the number of orders that are being placed; the audit may show their
 * effect in part. ELSEWHERE: the stock in Redis, or NULL if the caller does not know it. *ret_is_elsewhere: the product's stock
 * is in Redis. */
enum db_status audit_product(struct db *db, int64_t product_id, int in_flight,
                             const struct stock_elsewhere *elsewhere, char **ret_json,
                             bool *ret_is_elsewhere);

#endif
