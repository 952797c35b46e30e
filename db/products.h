/* Products: created, replaced, and reset to a known stock. */
#ifndef OVERSELL_DB_PRODUCTS_H
#define OVERSELL_DB_PRODUCTS_H

#include "db/conn.h"

enum { PRODUCT_NAME_MAX = 200 };
#define STOCK_MAX 1000000000000 /* units of one product */

/* Creates the product or replaces its name, price (decimal text) and stock. Orders stay: the initial count becomes
 * STOCK plus what they sold, so that the books stay balanced. *ret_created tells which. */
enum db_status products_put(struct db *db, int64_t id, const char *name, const char *price, int64_t stock,
                            const char *user, bool *ret_created);

/* Deletes the product's orders and sets its stock and its kind; the version only ever grows, fences stay.
 * *ret_found is false where there is no such product. */
enum db_status products_reset(struct db *db, int64_t id, int64_t stock, const char *kind, const char *user,
                              bool *ret_found);

/* Kinds of stock that a product can be reset to: names, ended by NULL. */
extern const char *const stock_kinds[];

#endif
