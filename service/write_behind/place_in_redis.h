/* Places orders of a product whose stock lies in Redis: one round trip takes the stock and accepts the orders there. The writer
 * stores them in PostgreSQL afterwards. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_PLACE_IN_REDIS_H
#define OVERSELL_SERVICE_WRITE_BEHIND_PLACE_IN_REDIS_H

#include "service/engine/create_order.h"

#include <stddef.h>

/* Does what create_order does, for COUNT orders (1 to ORDER_BATCH_MAX) orders of one product, in the order of their arrival, placed by one
 * thread with one connection to Redis. PostgreSQL is asked only where an order has an Idempotency-Key, no ids lie ready, or
 * Redis does not have the product's stock. */
void create_in_redis(struct placing *const *orders, size_t count);

#endif
