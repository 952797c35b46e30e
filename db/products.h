/* Products: created, replaced, and reset to a known stock. */
#ifndef OVERSELL_DB_PRODUCTS_H
#define OVERSELL_DB_PRODUCTS_H

#include "db/stock_kind.h"

enum { PRODUCT_NAME_MAX = 200 };

/* What a product's stock shall be: at most stock_kinds[kind].most units. */
struct stock {
    enum stock_kind kind;
    int64_t units;
};

/* Creates the product or replaces its name, price (decimal text) and stock. Orders stay: the initial count becomes
 * the stock plus what they sold, so that the books stay balanced. *ret_created tells which. */
enum db_status products_put(struct db *db, int64_t id, const char *name, const char *price,
                            const struct stock *stock, const char *user, bool *ret_created);

/* Deletes the product's orders and sets its stock and its kind; the version only ever grows, fences stay.
 * *ret_found is false where there is no such product. */
enum db_status products_reset(struct db *db, int64_t id, const struct stock *stock, const char *user,
                              bool *ret_found);

#endif
