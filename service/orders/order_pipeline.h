/* The order pipeline: the admission queue, the workers that place its orders, and what these share. The HTTP handlers put
 * orders in with order_job_queue. */
#ifndef OVERSELL_SERVICE_ORDERS_ORDER_PIPELINE_H
#define OVERSELL_SERVICE_ORDERS_ORDER_PIPELINE_H

#include "service/config/config.h"
#include "service/engine/unsold.h"
#include "service/http/server.h"
#include "service/orders/admission_queue.h"
#include "service/orders/trace.h"
#include "service/write_behind/order_ids.h"
#include "service/write_behind/writer.h"

struct order_worker;

/* Constant after order_pipeline_start; what it points to may be used by any thread. */
struct order_pipeline {
    const struct config *config;
    const char *instance; /* this process's name, recorded with each order */
    /* May the client order this product? In a class the product can go to another learner while an order waits. If the client
     * may not, the function replies to the exchange and returns false. */
    bool (*may_order)(struct exchange *x, int64_t product_id);

    struct admission_queue *queue; /* the admission queue, which also has the settings of the products */
    struct order_ids *ids;         /* for orders that are accepted in Redis … */
    struct writer *writer;         /* … and what writes them to PostgreSQL; NULL without Redis */
    struct unsold_list *unsold;    /* units of failed orders that are still to be given back */
    struct order_worker *workers;  /* config->workers of them, each with its … */
    struct trace_ring **traces;    /* … traces */
};

/* Starts all threads of PIPELINE, whose first three members the caller has set. False: out of memory or threads, and no thread
 * is left. */
bool order_pipeline_start(struct order_pipeline *pipeline);
/* Waits until the queued orders are placed and answered, then ends all threads. The queue stays, and refuses further orders. */
void order_pipeline_stop(struct order_pipeline *pipeline);
/* Frees the rest, after order_pipeline_stop, once no other thread uses the pipeline. */
void order_pipeline_free(struct order_pipeline *pipeline);

/* The number of orders that wait, are being placed, or have units to give back: of one product, or of all (0). Any thread. */
int orders_running(const struct order_pipeline *pipeline, int64_t product_id);

#endif
