/* An order on its way through the service: from its request, through the admission queue, to its answer. */
#ifndef OVERSELL_SERVICE_ORDER_JOB_H
#define OVERSELL_SERVICE_ORDER_JOB_H

#include "db/orders.h"
#include "service/service.h"

/* The longest Idempotency-Key of a learner: it is stored with the id of the learner's product. */
enum { LEARNER_KEY_MAX = ORDER_KEY_MAX - 20 };

/* Queues the order of a request that was handed over (http_hand_over), or answers that there is no room; never waits. The
 * exchange and BODY, which owns REQUEST's strings, belong to the order from here on. STRATEGY is the one that the client
 * asked for, NULL for the current one. Any thread. */
void order_job_queue(struct exchange *x, const struct order_request *request, json_t *body,
                     const struct strategy *strategy);

/* The same for a request that only goes the way of an order: when a worker has it, REPLY answers. */
void order_job_queue_echo(struct exchange *x, const struct order_request *request, json_t *body);

/* On a worker: places the orders of the turn, ends it, and answers and frees the orders. */
void order_jobs_run(struct turn *turn, struct worker *worker);

#endif
