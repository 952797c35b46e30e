/* The settings of a product's orders, which PUT /strategy changes. */
#ifndef OVERSELL_SERVICE_ORDERS_SETTINGS_H
#define OVERSELL_SERVICE_ORDERS_SETTINGS_H

#include "service/engine/strategy.h"

#include <stdint.h>

struct settings {
    const struct strategy *strategy;
    int64_t lock_ttl_ms;
    int64_t lock_wait_ms;
    int64_t think_ms;
    int64_t product_limit; /* orders of one product that use the database at once; 0: any number */
    /* 1: a strategy with COMBINE_IN_TURN places the waiting orders of a product in turn; 0: it does not */
    int64_t in_turn;
};

#endif
