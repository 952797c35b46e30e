/* From a batch to the engine: gives the orders the worker's connections, has their strategy place them, and replies. */
#ifndef OVERSELL_SERVICE_ORDERS_PLACE_ORDERS_H
#define OVERSELL_SERVICE_ORDERS_PLACE_ORDERS_H

#include "service/orders/order_job.h"
#include "service/orders/order_worker.h"

/* Places COUNT (1 to ORDER_BATCH_MAX) orders of BATCH, together if its strategy combines orders, and replies to each. Reports
 * them to the traces, the metrics and the log. The jobs stay the caller's. For the thread of WORKER. */
void place_orders(struct order_job *const *jobs, size_t count, const struct order_batch *batch,
                  struct order_worker *worker);

/* Places COUNT orders one after the other on one connection, each in its own transaction: the next one begins while PostgreSQL
 * still commits the one before. Ends, answers and frees each as soon as it is known what became of it. */
void place_in_turn(struct order_job *const *jobs, size_t count, struct order_batch *batch,
                   struct order_worker *worker);

#endif
