/* Measures how often threads can acquire and release a lock, and how fast a contended lock passes from holder to holder. */
#ifndef OVERSELL_LOADTEST_BENCH_LOCK_H
#define OVERSELL_LOADTEST_BENCH_LOCK_H

#include "loadtest/bench/threads.h"
#include "lock/registry.h"

/* The keys that the threads acquire: each thread a different key, or all the same key. */
enum lock_rivalry { A_KEY_EACH, ONE_KEY };

/* THREADS threads, each with its own handle, acquire and release for MS; returns the rate per second. False,
 * with the reason in RET_REASON (of REASON_SIZE; "" at an interrupt). */
bool lock_cycles(const struct lock_driver *driver, enum lock_rivalry rivalry, size_t threads, int64_t ms,
                 struct progress *progress, double *ret_per_s, char *ret_reason);

/* What became of one key for which several threads waited. */
struct hand_overs {
    double median_ms; /* from the start of a release to the return of somebody else's acquire */
    double wake_ups;  /* of waiters, for each release */
    double
        together; /* share of the acquisitions while another thread was still inside: 0 for a correct lock */
};

/* THREADS threads acquire and release the same key for MS. */
bool lock_hand_overs(const struct lock_driver *driver, size_t threads, int64_t ms, struct progress *progress,
                     struct hand_overs *ret_hand_overs, char *ret_reason);

#endif
