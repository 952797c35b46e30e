/* The order job: an order from its request, through the admission queue, to its answer. */
#ifndef OVERSELL_SERVICE_ORDERS_ORDER_JOB_H
#define OVERSELL_SERVICE_ORDERS_ORDER_JOB_H

#include "db/orders/orders.h"
#include "service/api/service.h"

/* The longest Idempotency-Key of a learner: it is stored with the id of the learner's product. */
enum { LEARNER_KEY_MAX = ORDER_KEY_MAX - 20 };

/* Puts the order of a request that was handed over (http_hand_over) into the admission queue, or refuses it if the queue
 * is full; never waits. Takes over the exchange and BODY, which owns REQUEST's strings. STRATEGY: the one that the client
 * asked for, NULL for the current one. Any thread. */
void order_job_queue(struct exchange *x, const struct order_request *request, json_t *body,
                     const struct strategy *strategy);

/* The same for a request that takes the path of an order but places none: the worker replies with the request. */
void order_job_queue_echo(struct exchange *x, const struct order_request *request, json_t *body);

/* On a worker: places the orders of the turn, ends it, and answers and frees the orders. */
void order_jobs_run(struct turn *turn, struct worker *worker);

#endif
