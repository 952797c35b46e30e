/* Creates products, replaces them, and resets them to a known stock. */
#ifndef OVERSELL_DB_PRODUCTS_PRODUCTS_H
#define OVERSELL_DB_PRODUCTS_PRODUCTS_H

#include "db/stock/kinds.h"

enum { PRODUCT_NAME_MAX = 200 };

/* The stock that a product gets: at most stock_kinds[kind].most units. */
struct stock {
    enum stock_kind kind;
    int64_t units;
};

/* Keeps a stock outside PostgreSQL (in Redis). A change of the product discards that stock while the product's row is locked, so
 * that no thread loads it again in between. If the keeper fails, the product does not change. */
struct stock_keeper {
    /* Discards the stock of EPOCH. *ret_units: the units of orders that PostgreSQL does not have yet. False: the keeper could
     * not do it. */
    bool (*forget)(struct stock_keeper *keeper, int64_t product_id, int64_t epoch, int64_t *ret_units);
};

/* The result of a change of a product. */
enum product_change {
    PRODUCT_CHANGED,
    PRODUCT_CREATED,
    PRODUCT_MISSING,
    PRODUCT_KEPT,    /* the keeper could not discard the stock; nothing changed */
    PRODUCT_AWAITED, /* PostgreSQL does not have all orders of a stock in Redis yet; nothing changed */
};

/* Creates the product or replaces its name, price (decimal text) and stock. Orders stay: the initial count becomes
 * the stock plus what they sold, so that the audit stays balanced. Orders that have read the old stock and not yet written
 * are refused (product.stock_epoch). KEEPER is called if the old or the new stock is in Redis. */
enum db_status products_put(struct db *db, int64_t id, const char *name, const char *price,
                            const struct stock *stock, const char *user, struct stock_keeper *keeper,
                            enum product_change *ret_change);

/* Deletes the product's orders and sets its stock and its kind; the version only ever grows, fences stay.
 * Orders that have read the old stock and not yet written are refused, as at a PUT. KEEPER is called if the old or the
 * new stock is in Redis; orders that PostgreSQL does not have yet are never written. */
enum db_status products_reset(struct db *db, int64_t id, const struct stock *stock, const char *user,
                              struct stock_keeper *keeper, enum product_change *ret_change);

#endif
