/* The clock that all deadlines and times in traces are read from, and the wait for a condition until a deadline. */
#ifndef OVERSELL_BASE_CLOCK_H
#define OVERSELL_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Microseconds of the monotonic clock. Any thread. */
static inline int64_t monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Waits on CONDITION, with MUTEX held, until it is signalled or spuriously wakes: true; until UNTIL_US (monotonic_us()):
 * false. */
static inline bool wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_us)
{
    if (until_us < 0)
        return false;
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &until) == 0;
}

#endif
