/* Places many orders of one product in one transaction. */
#ifndef OVERSELL_SERVICE_ENGINE_BATCH_H
#define OVERSELL_SERVICE_ENGINE_BATCH_H

#include "service/engine/create_order.h"

#include <stddef.h>

/* Does what create_order does, for COUNT (1 to ORDER_BATCH_MAX) orders of one product, first come first, which share one
 * database connection: in one transaction or, if that fails, one by one. Each order has its own result. On the thread that uses
 * the connection. */
void create_batch(struct placing *const *orders, size_t count);

/* Places an order once, in its own transaction, for the strategy table. Never ORDER_GO_ON. */
enum outcome place_in_batch(struct placing *placing);

#endif
