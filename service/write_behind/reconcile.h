/* Stock that lies in Redis, held against PostgreSQL.
 *
 * What must be true is: left in Redis = left by the orders in PostgreSQL − units of the orders that are still in the stream.
 * Both sides are seen as of one moment: the product's row is locked, so no order of it can be written meanwhile, and one
 * script reads Redis. Orders that are taken afterwards change both of Redis's figures alike, so nobody has to stop. */
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

/* One look at a product, and what goes with it. */
struct reconciliation {
    enum db_status db_status;
    enum lock_status lock_status;
    struct product_behind product;
    struct stock_survey survey; /* released when a call returns */
    int64_t orders_to_come, units_to_come;
};

/* Loads the stock of the product where Redis does not have it, and repairs it where it is not what it must be; what was
 * repaired is logged and counted. By DEADLINE (monotonic_us), with its own transaction. */
enum reconciled reconcile(struct db *db, struct redis_stock *stock, int64_t product_id, int64_t deadline_us,
                          struct reconciliation *ret);

/* The audit of a product whose stock lies in Redis, as of one moment. RECONCILED: *ret_json, as from audit_product. */
enum reconciled reconcile_audit(struct db *db, struct redis_stock *stock, int64_t product_id, int in_flight,
                                int64_t deadline_us, struct reconciliation *ret, char **ret_json);

/* Throws stock away for products_put and products_reset. */
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

/* Units that repairs in this process have added or taken away. */
uint64_t reconcile_repaired_units(void);

#endif
