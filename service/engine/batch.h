/* Many orders of one product in one transaction. */
#ifndef OVERSELL_SERVICE_ENGINE_BATCH_H
#define OVERSELL_SERVICE_ENGINE_BATCH_H

#include "service/engine/create_order.h"

#include <stddef.h>

/* As create_order for each of COUNT (1 to ORDER_BATCH_MAX) orders of one product, in the order of their arrival, placed by one
 * thread with one database: in one transaction, where all goes well, else one by one. Each has its own result. */
void create_batch(struct placing *const *orders, size_t count);

/* For create_order: one try of one order, in a transaction of its own. Never ORDER_GO_ON. */
enum outcome place_in_batch(struct placing *placing);

#endif
