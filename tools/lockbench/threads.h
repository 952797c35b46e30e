/* Runs threads that repeat the same action concurrently for a given time. */
#ifndef OVERSELL_TOOLS_LOCKBENCH_THREADS_H
#define OVERSELL_TOOLS_LOCKBENCH_THREADS_H

#include <stddef.h>
#include <stdint.h>

/* What each thread does. */
struct thread_work {
    size_t size; /* of OWN, which each thread has for itself: zeroed memory */
    /* Prepares the thread and makes one turn, so that the first turn that counts is like all others. */
    void (*begin)(void *own, void *shared, size_t member);
    /* Makes one turn, and waits until END_US (monotonic_us) at most. A turn that ends later does not count. */
    void (*turn)(void *own, int64_t end_us);
    void (*end)(void *own);
};

/* Runs THREADS threads for MS milliseconds, which begin for all of them together, and returns their turns per second. SHARED
 * goes to each begin. */
double threads_run(const struct thread_work *work, void *shared, size_t threads, int64_t ms);

/* Says why on stderr and ends the program, which only measures: its private servers free what it held. Any thread. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

#endif
