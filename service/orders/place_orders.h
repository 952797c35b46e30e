/* What a worker does with a batch of the admission queue. */
#ifndef OVERSELL_SERVICE_ORDERS_PLACE_ORDERS_H
#define OVERSELL_SERVICE_ORDERS_PLACE_ORDERS_H

#include "service/orders/order_worker.h"

/* Places the orders of BATCH (struct order_job), and reports them to the traces, the metrics and the log. Ends the batch; answers
 * and frees the jobs. For the thread of WORKER. */
void place_orders(struct order_batch *batch, struct order_worker *worker);

#endif
