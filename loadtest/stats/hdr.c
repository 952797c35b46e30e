/* A histogram of latencies that knows each to a thousandth, from one microsecond to an hour. */
#include "loadtest/stats/hdr.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

/* Lines until the distance to 100 % has halved. */
#define TICKS_PER_HALF 5

/* Values below HDR_SUB have a bucket each; from then on the highest bit names the octave, and the bits behind it the
 * bucket within. */
static size_t bucket_of(int64_t us)
{
    if (us < HDR_SUB)
        return (size_t)us;
    int octave = 63 - __builtin_clzll((unsigned long long)us) - HDR_SUB_BITS;
    if (octave >= HDR_OCTAVES)
        return HDR_BUCKETS - 1;
    return (size_t)(octave + 1) * HDR_SUB + (size_t)((us >> octave) & (HDR_SUB - 1));
}

/* The greatest value of a bucket. */
static int64_t top_of(size_t bucket)
{
    if (bucket < HDR_SUB)
        return (int64_t)bucket;
    int octave = (int)(bucket / HDR_SUB) - 1;
    return (((int64_t)HDR_SUB + (int64_t)(bucket % HDR_SUB) + 1) << octave) - 1;
}

void hdr_add(struct hdr *hdr, int64_t us)
{
    us = us < 0 ? 0 : us;
    hdr->min_us = hdr->count == 0 || us < hdr->min_us ? us : hdr->min_us;
    hdr->max_us = us > hdr->max_us ? us : hdr->max_us;
    hdr->count++;
    hdr->sum_us += (double)us;
    hdr->sum_of_squares += (double)us * (double)us;
    hdr->buckets[bucket_of(us)]++;
}

void hdr_merge(struct hdr *hdr, const struct hdr *other)
{
    if (other->count == 0)
        return;
    hdr->min_us = hdr->count == 0 || other->min_us < hdr->min_us ? other->min_us : hdr->min_us;
    hdr->max_us = other->max_us > hdr->max_us ? other->max_us : hdr->max_us;
    hdr->count += other->count;
    hdr->sum_us += other->sum_us;
    hdr->sum_of_squares += other->sum_of_squares;
    for (size_t i = 0; i < HDR_BUCKETS; i++)
        hdr->buckets[i] += other->buckets[i];
}

/* Also how many samples do not exceed it. */
static int64_t percentile(const struct hdr *hdr, double p, int64_t *ret_total)
{
    int64_t rank = (int64_t)ceil(p * (double)hdr->count), seen = 0;
    rank = rank < 1 ? 1 : rank > hdr->count ? hdr->count : rank;
    size_t bucket = 0;
    while ((seen += hdr->buckets[bucket]) < rank)
        bucket++;
    *ret_total = seen;
    /* The last bucket has no top. */
    int64_t top = top_of(bucket);
    return top < hdr->max_us && bucket < HDR_BUCKETS - 1 ? top : hdr->max_us;
}

int64_t hdr_percentile(const struct hdr *hdr, double p)
{
    int64_t total;
    return hdr->count == 0 ? -1 : percentile(hdr, p, &total);
}

double hdr_mean(const struct hdr *hdr)
{
    return hdr->count == 0 ? 0 : hdr->sum_us / (double)hdr->count;
}

double hdr_deviation(const struct hdr *hdr)
{
    double mean = hdr_mean(hdr);
    double variance = hdr->count == 0 ? 0 : hdr->sum_of_squares / (double)hdr->count - mean * mean;
    return variance > 0 ? sqrt(variance) : 0; /* rounding may bring it below 0 */
}

void hdr_print(const struct hdr *hdr, FILE *out)
{
    fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    double p = 0;
    int64_t total = 0;
    while (total < hdr->count) {
        int64_t us = percentile(hdr, p, &total);
        fprintf(out, "%12.3f %14.12f %10" PRId64 " %14.2f\n", (double)us / 1e3, p, total, 1 / (1 - p));
        double half = pow(2, floor(log2(1 / (1 - p))) + 1);
        p += 1 / (TICKS_PER_HALF * half);
    }
    if (hdr->count > 0)
        fprintf(out, "%12.3f %14.12f %10" PRId64 " %14s\n", (double)hdr->max_us / 1e3, 1.0, hdr->count,
                "inf");
    fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", hdr_mean(hdr) / 1e3,
            hdr_deviation(hdr) / 1e3);
    fprintf(out, "#[Max     = %12.3f, Total count    = %12" PRId64 "]\n", (double)hdr->max_us / 1e3,
            hdr->count);
    fprintf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", HDR_OCTAVES + 1, HDR_SUB);
}
