/* What lockbench measures. Each function ends the program by die() on a failure, and needs lock_configure first. */
#ifndef OVERSELL_TOOLS_LOCKBENCH_LOCKBENCH_H
#define OVERSELL_TOOLS_LOCKBENCH_LOCKBENCH_H

#include "lock/registry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rate per second that THREADS threads reach in MS. */
typedef double rate_fn(size_t threads, int64_t ms);

/* What an uncontended lock in etcd asks for: a lease, a transaction, and the lease's end; a connection for each thread. */
rate_fn etcd_bare_cycles;
/* What an uncontended lock on ZooKeeper asks for: create, list, delete; a session for each thread. */
rate_fn zookeeper_bare_cycles;
/* The script of redis-stock: two connections without pauses, each with half of as many orders in a script as there are threads. */
rate_fn redis_stock_takes;

/* Threads, each with its own handle, acquire and release: all the same key, or each its own. */
double lock_cycles(const struct lock_driver *driver, bool one_key, size_t threads, int64_t ms);

/* What became of one key for which several threads waited. */
struct hand_overs {
    double median_ms; /* from the start of a release to the return of somebody else's acquire */
    double wake_ups;  /* of waiters, for each release */
    /* share of the acquisitions while another thread was still inside: 0 for a correct lock */
    double together;
};

/* Threads acquire and release the same key for MS. */
struct hand_overs lock_hand_overs(const struct lock_driver *driver, size_t threads, int64_t ms);

#endif
