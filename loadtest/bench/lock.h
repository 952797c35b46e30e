/* Locks as the benchmark takes them: as often as they can be had, and from hand to hand. */
#ifndef OVERSELL_LOADTEST_BENCH_LOCK_H
#define OVERSELL_LOADTEST_BENCH_LOCK_H

#include "loadtest/bench/threads.h"
#include "lock/registry.h"

/* Who wants them: each thread a key that nobody else wants, or all the same one. */
enum lock_rivalry { A_KEY_EACH, ONE_KEY };

/* Acquires and releases by so many threads for MS, each with a handle of its own; tells how often a second. False,
 * with the reason in RET_REASON (of REASON_SIZE; "" at an interrupt). */
bool lock_cycles(const struct lock_driver *driver, enum lock_rivalry rivalry, size_t threads, int64_t ms,
                 struct progress *progress, double *ret_per_s, char *ret_reason);

/* What became of one key for which several threads waited. */
struct hand_overs {
    double median_ms; /* from the start of a release to the return of somebody else's acquire */
    double wake_ups;  /* of waiters, for each release */
    double
        together; /* share of the acquisitions at which somebody else was still inside: 0 where it is a lock */
};

/* Lets so many threads pass one key around for MS. */
bool lock_hand_overs(const struct lock_driver *driver, size_t threads, int64_t ms, struct progress *progress,
                     struct hand_overs *ret_hand_overs, char *ret_reason);

#endif
