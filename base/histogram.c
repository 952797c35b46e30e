/* A log-linear histogram of durations. */
#include "base/histogram.h"

/* Values below SUB have a bucket each; from then on the highest bit names the octave and the next three bits the
 * bucket within it. */
int histogram_bucket(int64_t us)
{
    if (us < HISTOGRAM_SUB)
        return us < 0 ? 0 : (int)us;
    int octave = 63 - __builtin_clzll((unsigned long long)us) - 3; /* 8 to 15 are octave 0 */
    int bucket = (octave + 1) * HISTOGRAM_SUB + (int)((us >> octave) & (HISTOGRAM_SUB - 1));
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

int64_t histogram_upper_us(int bucket)
{
    if (bucket < HISTOGRAM_SUB)
        return bucket + 1;
    int octave = bucket / HISTOGRAM_SUB - 1;
    return ((int64_t)HISTOGRAM_SUB + bucket % HISTOGRAM_SUB + 1) << octave;
}

void histogram_add(struct histogram *histogram, int64_t us)
{
    atomic_fetch_add_explicit(&histogram->buckets[histogram_bucket(us)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_us, (unsigned long long)(us < 0 ? 0 : us),
                              memory_order_relaxed);
}
