/* Counters and histograms of orders, by strategy and outcome, as Prometheus text. Any thread. */
#ifndef OVERSELL_SERVICE_ORDERS_METRICS_H
#define OVERSELL_SERVICE_ORDERS_METRICS_H

#include "service/engine/outcome.h"
#include "service/engine/strategy.h"

#include <stdio.h>

/* Counts an order that ended US after it arrived, with TRIES tries and ROUND_TRIPS to the database. */
void metrics_order(const struct strategy *strategy, enum outcome outcome, int64_t us, int tries,
                   uint64_t round_trips);
/* Counts a wait for a lock, or the time that it was held, in microseconds. */
void metrics_lock_wait(const struct strategy *strategy, int64_t us);
void metrics_lock_held(const struct strategy *strategy, int64_t us);
/* Counts what an order's lock cost: requests to its server, and how often a waiting thread woke. */
void metrics_lock_work(const struct strategy *strategy, uint64_t round_trips, uint64_t wake_ups);
/* Counts a batch of COUNT orders (1 or more), for a strategy that combines orders. */
void metrics_batch(const struct strategy *strategy, size_t count);
void metrics_lock_lost_after_commit(const struct strategy *strategy);

/* All of it as Prometheus text. Of a histogram's buckets only those that hold something are printed. */
void metrics_print(FILE *to);

#endif
