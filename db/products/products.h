/* Products: created, replaced, and reset to a known stock. */
#ifndef OVERSELL_DB_PRODUCTS_PRODUCTS_H
#define OVERSELL_DB_PRODUCTS_PRODUCTS_H

#include "db/stock/kinds.h"

enum { PRODUCT_NAME_MAX = 200 };

/* What a product's stock shall be: at most stock_kinds[kind].most units. */
struct stock {
    enum stock_kind kind;
    int64_t units;
};

/* Who has a stock that lies elsewhere. The stock is thrown away there while the product's row is locked, so that it is not
 * missed; a failure changes nothing here. */
struct stock_keeper {
    /* Throws away the stock of EPOCH. *ret_units: those that were taken from it by orders that are yet to be written here.
     * False: it could not be done. */
    bool (*forget)(struct stock_keeper *keeper, int64_t product_id, int64_t epoch, int64_t *ret_units);
};

/* What has become of a change of a product. */
enum product_change {
    PRODUCT_CHANGED,
    PRODUCT_CREATED,
    PRODUCT_MISSING,
    PRODUCT_KEPT,    /* the keeper could not throw its stock away, and nothing was changed */
    PRODUCT_AWAITED, /* orders are yet to be written that were taken from a stock of the kind redis; as it was */
};

/* Creates the product or replaces its name, price (decimal text) and stock. Orders stay: the initial count becomes
 * the stock plus what they sold, so that the audit stays balanced. Orders that have read the old stock and not yet written
 * are refused (product.stock_epoch). KEEPER is asked where the stock lay in Redis, or shall lie there. */
enum db_status products_put(struct db *db, int64_t id, const char *name, const char *price,
                            const struct stock *stock, const char *user, struct stock_keeper *keeper,
                            enum product_change *ret_change);

/* Deletes the product's orders and sets its stock and its kind; the version only ever grows, fences stay.
 * Orders that have read the old stock and not yet written are refused, as at a PUT. KEEPER is asked where the stock lay in
 * Redis, or shall lie there; orders that are yet to be written never are. */
enum db_status products_reset(struct db *db, int64_t id, const struct stock *stock, const char *user,
                              struct stock_keeper *keeper, enum product_change *ret_change);

#endif
