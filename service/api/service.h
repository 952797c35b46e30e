/* The running service: what all HTTP handlers share. */
#ifndef OVERSELL_SERVICE_API_SERVICE_H
#define OVERSELL_SERVICE_API_SERVICE_H

#include "base/queue.h"
#include "service/api/response_cache.h"
#include "service/api/workers.h"
#include "service/classroom/board.h"
#include "service/classroom/sandbox.h"
#include "service/config/config.h"
#include "service/http/server.h"
#include "service/orders/order_pipeline.h"
#include "service/orders/sales.h"
#include "service/runs/runs.h"

#include <stdatomic.h>

struct service {
    struct config config;
    char instance[INSTANCE_MAX + 1]; /* this process's name in orders, traces and logs */
    struct order_pipeline orders;
    struct sales sales;
    struct http *http; /* the main thread's; requests may come before it is set */
    atomic_uint port;  /* where it listens; 0: not known yet */
    struct runs *runs;
    struct response_cache *responses;
    struct sandboxes *sandboxes;
    struct board *board;
    /* of the exchanges for each lane's workers; NULL for a lane without workers */
    struct queue *queues[LANE_COUNT];
    struct worker *workers;
    int worker_count;
    atomic_bool draining; /* the service shuts down and refuses requests */
    atomic_bool stopping; /* the workers end, and refuse the calls that still wait */
    atomic_int holds;     /* locks that are held, or waited for, by POST /locks/NAME/hold */
};

/* For the HTTP server (http_options.dispatch): finds the route of a complete request, checks what is common to all requests,
 * and calls the handler or hands the exchange to the workers of the route's lane. Returns true if it has replied. */
bool service_dispatch(struct exchange *x);
/* For the HTTP server (http_options.refuse): replies to a request that is broken. */
void service_refuse(struct exchange *x, int status, const char *detail);

#endif
