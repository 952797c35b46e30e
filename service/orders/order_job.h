/* The order job: an order from its parsed request, through the admission queue and a worker, to its reply. */
#ifndef OVERSELL_SERVICE_ORDERS_ORDER_JOB_H
#define OVERSELL_SERVICE_ORDERS_ORDER_JOB_H

#include "service/http/server.h"
#include "service/orders/order_pipeline.h"

/* One thread at a time has a job: the HTTP thread, the admission queue, then a worker. */
struct order_job {
    struct queued_order queued; /* first: a pointer to it is a pointer to the job */
    struct exchange *x;
    json_t *body; /* owns the request's strings that are not the exchange's; or NULL */
    struct order_request request;
    struct order_work *work; /* place_orders.c, while a worker has it: a waiting order needs less memory */
    bool echo;               /* reply with the request, and place no order */
};

/* Puts the order of a request that was handed over (http_hand_over) into the admission queue, or replies with an error if
 * the queue is full; never waits. Takes over the exchange, and BODY, which owns those of REQUEST's strings that are not the
 * exchange's; NULL if there are none. STRATEGY: the one that the client asked for, NULL for the product's current one. Any
 * thread. */
void order_job_queue(struct order_pipeline *pipeline, struct exchange *x, const struct order_request *request,
                     json_t *body, const struct strategy *strategy);

/* The same for a request that takes the path of an order but places none: the worker replies with the request. */
void order_job_queue_echo(struct order_pipeline *pipeline, struct exchange *x,
                          const struct order_request *request);

/* Sends the answer unless that was done, and frees the job. */
void order_job_close(struct order_job *job);

#endif
