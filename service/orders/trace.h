/* The last orders of each worker, step by step: what GET /traces shows. */
#ifndef OVERSELL_SERVICE_ORDERS_TRACE_H
#define OVERSELL_SERVICE_ORDERS_TRACE_H

#include "service/engine/create_order.h"

#include <jansson.h>

enum { TRACE_STEPS = 32, TRACES_MAX = 2048 }; /* of all workers together */

struct trace {
    /* from 1 on, in the order in which this process added its traces; trace_ring_add sets it */
    uint64_t number;
    char request_id[65];
    const struct strategy *strategy;
    int worker;
    int64_t product_id, quantity;
    int64_t order_id; /* 0: none was created */
    enum outcome outcome;
    int tries;
    int64_t fence;
    int64_t received_us, started_us, ended_us;
    int step_count; /* may exceed TRACE_STEPS: the later ones were not kept */
    struct {
        enum step step;
        int64_t at_us; /* when it was done; it began when the one before was done */
        int64_t value;
        /* the pause after it, in which the order waits for nobody; the next step begins before the pause */
        int64_t think_us;
    } steps[TRACE_STEPS];
};

/* The recent traces of one worker, which alone adds to it; any thread may read. */
struct trace_ring;
/* Keeps the last CAPACITY orders that were placed, and a quarter as many that were not, because after a sale most orders end as
 * "sold out" and would push out the sales. NULL: out of memory. */
struct trace_ring *trace_ring_new(int capacity);
void trace_ring_free(struct trace_ring *ring);
void trace_ring_add(struct trace_ring *ring, const struct trace *trace);

/* The number of traces that this process has added to all its rings. All traces up to this number can be read. */
uint64_t traces_count(void);

/* A query: the newest LIMIT traces of a product (0: of all products) with a number above AFTER. */
struct trace_query {
    int64_t product_id;
    int limit;
    uint64_t after;
};

/* The traces of all RINGS that QUERY wants, oldest first; NULL when out of memory. */
json_t *traces_json(struct trace_ring *const *rings, int count, const struct trace_query *query,
                    const char *instance);
/* The same as Chrome's trace events, which ui.perfetto.dev opens. */
json_t *traces_chrome_json(struct trace_ring *const *rings, int count, const struct trace_query *query,
                           const char *instance);

#endif
