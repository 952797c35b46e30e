/* What write_behind.c and write_behind_insert.c share. */
#ifndef OVERSELL_DB_ORDERS_WRITE_BEHIND_IMPL_H
#define OVERSELL_DB_ORDERS_WRITE_BEHIND_IMPL_H

#include "db/orders/write_behind.h"

/* $1 products, an array: locks their rows, in the order of their ids, and returns what product_behind_read reads. */
extern const struct statement ST_LOCK_PRODUCTS;
void product_behind_read(const PGresult *rows, int row, struct product_behind *ret_product);

/* The look-up is a subquery by the row and no join, which would read the whole table where PostgreSQL had planned it for
 * a small one. */
#define NOT_WRITTEN "(SELECT o.id FROM orders o WHERE o.id = f.id) IS NULL"

int64_t behind_number(const PGresult *rows, int row, int column);

#endif
