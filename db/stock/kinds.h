/* The kinds of stock: how a product's units are stored. The column product.stock_kind names the kind of each product. */
#ifndef OVERSELL_DB_STOCK_KINDS_H
#define OVERSELL_DB_STOCK_KINDS_H

#include "db/postgres/connection.h"

#define STOCK_MAX 1000000000000 /* units of one product … */
#define STOCK_UNITS_MAX 100000  /* … where each is a row */
#define STOCK_BUCKETS_EACH 16   /* buckets of one product: as many as a service has workers by default */

enum stock_kind {
    STOCK_COUNTER, /* in one number, product.count */
    STOCK_UNITS,   /* in one row for each unit, product_unit */
    STOCK_BUCKETS, /* in several numbers, product_bucket */
    STOCK_REDIS,   /* in Redis; product.count is what the orders that are written so far have left */
    STOCK_KIND_COUNT
};

/* What there is to know of a kind, by enum stock_kind. */
struct stock_kind_row {
    const char *name;                      /* in product.stock_kind and in JSON */
    int64_t most;                          /* units of one product */
    const struct statement *fill, *settle; /* make the stock: $1 product, $2 units; SETTLE may be NULL */
};
extern const struct stock_kind_row stock_kinds[STOCK_KIND_COUNT];

/* False where there is no kind of this name. */
bool stock_kind_find(const char *name, enum stock_kind *ret_kind);

/* Throws away the units and buckets of the product and makes a stock of this KIND. In an open transaction that keeps
 * orders out of the product and has set its counter to 0 and its kind: products.c. */
enum db_status stock_fill(struct db *db, int64_t product_id, enum stock_kind kind, int64_t stock);

#endif
