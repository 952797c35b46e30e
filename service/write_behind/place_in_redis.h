/* Orders whose stock lies in Redis: taken and accepted there in one round trip, written to PostgreSQL afterwards. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_PLACE_IN_REDIS_H
#define OVERSELL_SERVICE_WRITE_BEHIND_PLACE_IN_REDIS_H

#include "service/engine/create_order.h"

#include <stddef.h>

/* As create_order for each of COUNT (1 to ORDER_BATCH_MAX) orders of one product, in the order of their arrival, placed by one
 * thread with one connection to Redis. PostgreSQL is asked only where an order has an Idempotency-Key, no ids lie ready, or
 * Redis does not have the product's stock. */
void create_in_redis(struct placing *const *orders, size_t count);

#endif
