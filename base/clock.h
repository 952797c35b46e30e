/* The clock that all deadlines and times in traces are read from. */
#ifndef OVERSELL_BASE_CLOCK_H
#define OVERSELL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Microseconds of the monotonic clock. Any thread. */
static inline int64_t monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif
