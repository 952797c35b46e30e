/* A histogram of latencies that knows each to a thousandth, from one microsecond to an hour: log-linear, as Gil Tene's
 * HdrHistogram, and printed as that is, for hdrplot. (The service's own histogram is coarser, and atomic.) */
#ifndef OVERSELL_LOADTEST_STATS_HDR_H
#define OVERSELL_LOADTEST_STATS_HDR_H

#include <stdint.h>
#include <stdio.h>

enum {
    HDR_SUB_BITS = 10,
    HDR_SUB = 1 << HDR_SUB_BITS, /* buckets for each doubling */
    HDR_OCTAVES = 22, /* up to 2^32 µs, about 71 minutes; what is longer goes into the last bucket */
    HDR_BUCKETS = HDR_SUB * (HDR_OCTAVES + 1)
};

/* All zero: empty. One thread at a time. */
struct hdr {
    int64_t count;
    int64_t min_us, max_us; /* exact; 0 while empty */
    double sum_us, sum_of_squares;
    int64_t buckets[HDR_BUCKETS];
};

/* Below 0 counts as 0. */
void hdr_add(struct hdr *hdr, int64_t us);
/* Adds all of OTHER. */
void hdr_merge(struct hdr *hdr, const struct hdr *other);
/* The least value, in µs, that a share P (0–1) of the samples does not exceed, rounded up by a thousandth at most; never
 * above the greatest sample. -1 if there are none. */
int64_t hdr_percentile(const struct hdr *hdr, double p);
/* In µs; 0 if there are no samples. */
double hdr_mean(const struct hdr *hdr);
double hdr_deviation(const struct hdr *hdr);

/* Prints the percentiles, in milliseconds, in HdrHistogram's text format: the four columns and the three lines beneath.
 * Errors of the stream are the caller's to look for. */
void hdr_print(const struct hdr *hdr, FILE *out);

#endif
