/* One strategy in a rush: its maximum where that is asked for, then the sale by schedule, and its books. */
#ifndef OVERSELL_LOADTEST_OPENLOOP_RUSH_RUN_H
#define OVERSELL_LOADTEST_OPENLOOP_RUSH_RUN_H

#include "loadtest/cli/progress.h"
#include "loadtest/load/measure.h"
#include "loadtest/openloop/flush_probe.h"
#include "loadtest/openloop/open_loop.h"

struct rush_plan {
    const struct shape *shape;
    int64_t rate;    /* arrivals per second where the shape is at its highest; 0: by share */
    double share;    /* of what the strategy makes in a closed loop */
    int64_t loop_ms; /* how long that is measured */
    int64_t duration_ms, timeout_ms, think_ms;
    int64_t connections, backlog;
    int64_t product, products;
    double zipf;
    int64_t quantity;
    int64_t stock; /* of each product; 0: what the shape calls for */
    int64_t seed;
};

struct rush {
    bool ran;       /* else the strategy is not available */
    double maximum; /* orders created per second in the closed loop; 0: not measured */
    int64_t closed_us
        [LOAD_PERCENTILES]; /* latencies in the closed loop, from the sending of each request; 0: not measured */
    double rate;            /* arrivals per second where the shape is at its highest */
    int64_t stock;          /* of all products together, as the books that follow */
    struct books books;     /* the witness is the first that was found; drift is that of the worst product */
    bool stock_kept, books_kept, answers_kept;
    enum verdict verdict;
    struct open_result load;
    struct flushes flushes; /* of the private stack's disk, during the sale */
};

/* False, having said why on stderr unless it was an interrupt; else the rush is to be freed. */
bool rush_run(struct testbed *testbed, const struct rush_plan *plan, const struct subject *subject,
              struct progress *progress, struct rush *ret_rush);
void rush_free(struct rush *rush);

/* 201 and 202. */
int64_t rush_created(const struct open_counts *counts);

#endif
