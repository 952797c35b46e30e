/* SQL that several files share: expressions, and those statements of an order that `bench` also measures. */
#ifndef OVERSELL_DB_POSTGRES_STATEMENTS_H
#define OVERSELL_DB_POSTGRES_STATEMENTS_H

#include "db/postgres/connection.h"

/* A timestamp column as text; sessions are in UTC. */
#define RFC3339(column) "to_char(" column ", 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

/* The number of a product's advisory lock. PRODUCT is an SQL expression for its id as text. */
#define PRODUCT_KEY(product) "hashtextextended('product:' || " product ", 0)"
/* Reads product $1, and keeps resets of it out until the transaction ends; other orders may do so at the same time. If the
 * statement had to wait for a reset, its snapshot is older: it finds neither the old stock, which is gone, nor the new one. */
#define PRODUCT_AGAINST_RESET                                                                                \
    "SELECT id, price, stock_kind, stock_epoch, pg_advisory_xact_lock_shared(" PRODUCT_KEY(                  \
        "id") ") FROM product WHERE id = $1"

extern const struct statement ST_BEGIN[]; /* by enum db_isolation */
extern const struct statement ST_COMMIT;
extern const struct statement ST_READ_FOR_UPDATE; /* $1 product */
extern const struct statement
    ST_STOCK_WRITE_TARGET;                /* $1 product, $2 what shall be left, $3 by whom, $4 epoch read */
extern const struct statement ST_GUARDED; /* $1 product, $2 quantity, $3 by whom */
/* $1 product, $2 quantity, $3 price, $4 receiver's name, $5 mobile, $6 Idempotency-Key, $7 instance, $8 stock seen,
 * $9 strategy, $10 when it was read, $11 snapshot of the read, $12 transaction that wrote the stock */
extern const struct statement ST_INSERT_ORDER;
/* $1 product, $2 quantity, $3 receiver's name, $4 mobile, $5 Idempotency-Key, $6 instance, $7 strategy */
extern const struct statement ST_PLACE_IN_ONE;
/* $1 product, $2 what shall be left, $3 price, $4 instance, $5 strategy, $6 when it was read; arrays: $7 quantities,
 * $8 stock seen, $9 receivers' names, $10 mobiles, $11 Idempotency-Keys */
extern const struct statement ST_INSERT_BATCH;

#endif
