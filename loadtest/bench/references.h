/* The references that locks and redis-stock are compared with: other programs, and bare loops of the same calls. */
#ifndef OVERSELL_LOADTEST_BENCH_REFERENCES_H
#define OVERSELL_LOADTEST_BENCH_REFERENCES_H

#include "loadtest/bench/threads.h"
#include "lock/config.h"

/* Measures the rate per second with THREADS threads or connections for MS, on the servers of CONFIG. False, with the reason in
 * RET_REASON (of REASON_SIZE; "" at an interrupt). */
typedef bool reference_fn(const struct lock_config *config, size_t threads, int64_t ms,
                          struct progress *progress, double *ret_per_s, char *ret_reason);

/* redis-benchmark's SET, one request at a time on each connection. */
reference_fn redis_benchmark_sets;
/* kazoo's lock on ZooKeeper, one key for all threads. */
reference_fn kazoo_cycles;
/* What an uncontended lock on ZooKeeper asks for: create, list, delete; a session for each thread. */
reference_fn zookeeper_bare_cycles;
/* What an uncontended lock in etcd asks for: a lease, a transaction, and the lease's end; a connection for each thread. */
reference_fn etcd_bare_cycles;
/* The script of redis-stock: two connections without pauses, each with half of as many orders in a script as there are threads. */
reference_fn redis_stock_takes;

/* Reads redis-benchmark's CSV; false unless it has a rate for SET. */
bool redis_benchmark_parse(const char *csv, double *ret_per_s);

#endif
