/* From a turn to the engine: gives the orders the worker's connections, has their strategy place them, and replies. */
#ifndef OVERSELL_SERVICE_ORDERS_PLACE_ORDERS_H
#define OVERSELL_SERVICE_ORDERS_PLACE_ORDERS_H

#include "service/orders/order_job.h"
#include "service/orders/order_worker.h"

/* Places COUNT (1 to TURN_ORDERS_MAX) orders of TURN, together if its strategy combines orders, and replies to each. Reports
 * them to the traces, the metrics and the log. The jobs stay the caller's. For the thread of WORKER. */
void place_orders(struct order_job *const *jobs, size_t count, const struct turn *turn,
                  struct order_worker *worker);

#endif
