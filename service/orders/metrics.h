/* Counters and histograms of orders, by strategy and outcome, as Prometheus text. Any thread. */
#ifndef OVERSELL_SERVICE_ORDERS_METRICS_H
#define OVERSELL_SERVICE_ORDERS_METRICS_H

#include "service/engine/outcome.h"
#include "service/engine/strategy.h"

#include <stdio.h>

/* An order has ended, US after it arrived, with so many tries and round trips to the database. */
void metrics_order(const struct strategy *strategy, enum outcome outcome, int64_t us, int tries,
                   uint64_t round_trips);
/* A lock was waited for, or held, for US. */
void metrics_lock_wait(const struct strategy *strategy, int64_t us);
void metrics_lock_held(const struct strategy *strategy, int64_t us);
/* What an order's lock cost: requests to its server, and how often its waiter was woken. */
void metrics_lock_work(const struct strategy *strategy, uint64_t round_trips, uint64_t wake_ups);
/* Orders of a strategy that combines them were taken together, COUNT of them: one, where it was alone. */
void metrics_batch(const struct strategy *strategy, size_t count);
void metrics_lock_lost_after_commit(const struct strategy *strategy);

/* All of it as Prometheus text. Of a histogram's buckets only those that hold something are printed. */
void metrics_print(FILE *to);

#endif
