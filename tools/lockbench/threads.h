/* Runs threads that repeat the same action concurrently for a given time. */
#ifndef OVERSELL_LOADTEST_BENCH_THREADS_H
#define OVERSELL_LOADTEST_BENCH_THREADS_H

#include "base/clock.h"
#include "loadtest/cli/progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REASON_SIZE = 240 };

/* What each thread does. Each function may say in RET_REASON, a buffer of REASON_SIZE bytes, why it returns false. */
struct thread_work {
    size_t size; /* of OWN, which each thread has for itself: zeroed memory */
    /* Prepares the thread and makes one turn, so that the first turn that counts is like all others. */
    bool (*begin)(void *own, void *shared, size_t member, char *ret_reason);
    /* Makes one turn, and waits until END_US (monotonic_us) at most. A turn that ends later does not count. */
    bool (*turn)(void *own, int64_t end_us, char *ret_reason);
    void (*end)(void *own); /* also after a begin that failed */
};

/* Runs THREADS threads for MS milliseconds, which begin for all of them together, and returns their turns per second. SHARED
 * goes to each begin. False, with the first failure in RET_REASON, or "" at an interrupt. PROGRESS may be NULL. */
bool threads_run(const struct thread_work *work, void *shared, size_t threads, int64_t ms,
                 struct progress *progress, double *ret_per_s, char *ret_reason);

#endif
