/* The start time of each product's current sale: open pages show only the orders since then. */
#ifndef OVERSELL_SERVICE_ORDERS_SALES_H
#define OVERSELL_SERVICE_ORDERS_SALES_H

#include "base/clock.h"

#include <stdatomic.h>
#include <stdint.h>

enum { SALES_MAX = 256 };

/* Zeroed at first. Two products whose ids are equal modulo SALES_MAX share a place: the older sale then begins later. */
struct sales {
    atomic_llong begun_us[SALES_MAX];
};

/* A sale of the product begins, and its orders from before are gone. Any thread. */
static inline void sale_begins(struct sales *sales, int64_t product_id)
{
    atomic_store(&sales->begun_us[(uint64_t)product_id % SALES_MAX], monotonic_us());
}

/* The start of the product's current sale (monotonic_us); 0: no sale has begun. Any thread. */
static inline int64_t sale_begun_us(struct sales *sales, int64_t product_id)
{
    return atomic_load(&sales->begun_us[(uint64_t)product_id % SALES_MAX]);
}

#endif
