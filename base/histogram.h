/* A log-linear histogram of durations: eight buckets for each doubling, so a value is known to about 12 %.
 * The idea is HdrHistogram's. Any thread may add and read at any time. */
#ifndef OVERSELL_BASE_HISTOGRAM_H
#define OVERSELL_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    HISTOGRAM_SUB = 8,
    HISTOGRAM_OCTAVES = 24, /* up to 2^27 µs, about two minutes; what is longer goes into the last bucket */
    HISTOGRAM_BUCKETS = HISTOGRAM_SUB * (HISTOGRAM_OCTAVES + 1)
};

struct histogram {
    atomic_ullong buckets[HISTOGRAM_BUCKETS];
    atomic_ullong count;
    atomic_ullong sum_us;
};

/* Counts a duration in microseconds. */
void histogram_add(struct histogram *histogram, int64_t us);
/* The bucket of a duration, and the first duration that is above a bucket. */
int histogram_bucket(int64_t us);
int64_t histogram_upper_us(int bucket);

#endif
