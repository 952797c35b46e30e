/* Compares the stock of a product in Redis with PostgreSQL, and repairs it.
 *
 * The rule: units left in Redis = units left according to PostgreSQL − units of the orders that are still in the stream. Both
 * sides are read as of one moment: the product's row is locked, so the writer cannot store an order meanwhile, and one script
 * reads Redis. An order that is accepted afterwards changes both sides by the same number, so selling goes on. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_RECONCILE_H
#define OVERSELL_SERVICE_WRITE_BEHIND_RECONCILE_H

#include "base/clock.h"
#include "db/orders/write_behind.h"
#include "db/products/audit.h"
#include "db/products/products.h"
#include "service/write_behind/redis_stock.h"

#include <stdatomic.h>

enum reconciled {
    RECONCILED,
    RECONCILE_NO_PRODUCT,
    RECONCILE_OTHER_KIND, /* reconciliation.product.kind */
    RECONCILE_DATABASE,   /* reconciliation.db_status says why it could not be done */
    RECONCILE_REDIS,      /* reconciliation.lock_status does */
};

/* The result of one comparison. */
struct reconciliation {
    enum db_status db_status;
    enum lock_status lock_status;
    struct product_behind product;
    struct stock_survey survey; /* released when a call returns */
    int64_t orders_to_come, units_to_come;
};

/* Loads the product's stock into Redis if it is not there, and repairs it if it breaks the rule. Logs and counts a repair. Runs
 * its own transaction on DB and ends by DEADLINE (monotonic_us). RECONCILED, or why not. */
enum reconciled reconcile(struct db *db, struct redis_stock *stock, int64_t product_id, int64_t deadline_us,
                          struct reconciliation *ret);

/* The audit of a product whose stock lies in Redis, as of one moment. RECONCILED: *ret_json, as from audit_product. */
enum reconciled reconcile_audit(struct db *db, struct redis_stock *stock, int64_t product_id, int in_flight,
                                int64_t deadline_us, struct reconciliation *ret, char **ret_json);

/* Removes stock from Redis for products_put and products_reset, within their transaction. */
struct redis_keeper {
    struct stock_keeper base;
    struct db *db;
    struct redis_stock *stock;
    int64_t deadline_us;
    enum reconciled failed; /* why it could not be done, with what goes with it */
    struct reconciliation last;
};
void redis_keeper_init(struct redis_keeper *keeper, struct db *db, struct redis_stock *stock,
                       int64_t deadline_us);

/* The number of units that repairs in this process have added or removed. Any thread. */
uint64_t reconcile_repaired_units(void);

#endif
