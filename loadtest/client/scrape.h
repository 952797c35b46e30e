/* What two looks at the services' metrics tell about one strategy: histograms, percentiles, counts. */
#ifndef OVERSELL_LOADTEST_CLIENT_SCRAPE_H
#define OVERSELL_LOADTEST_CLIENT_SCRAPE_H

#include <stdbool.h>
#include <stddef.h>

#define HISTOGRAM_MAX 512

/* COUNT[i] samples lie at or below BOUND[i] seconds and above the bound before it. Bounds ascend; a bucket
 * without samples may be missing, so two histograms need not have the same. */
struct histogram {
    size_t buckets;
    double bound[HISTOGRAM_MAX];
    double count[HISTOGRAM_MAX];
};

struct scrape {
    struct histogram created;   /* seconds that orders took which were created or accepted */
    struct histogram lock_wait; /* seconds that orders waited for their lock */
    double round_trips;         /* to the database */
    double tries;
    double orders;           /* all outcomes */
    double lock_round_trips; /* to the lock's server */
    double releases;         /* of the lock outside the database */
    double wake_ups;         /* of orders that waited for it */
};

/* Adds what TEXT, in Prometheus' format, says of the strategy; *sum starts zeroed. False if a histogram has
 * too many buckets, or buckets that are out of order. */
bool scrape_add(const char *text, const char *strategy, struct scrape *sum);
/* What has happened between two scrapes of the same services. */
void scrape_difference(const struct scrape *before, const struct scrape *after,
                       struct scrape *ret_difference);

/* The seconds that a share P (0–1) of the samples stays within: the upper bound of a bucket, since nothing
 * is known inside it. NaN if there are none; samples past the last finite bound count as that bound. */
double histogram_percentile(const struct histogram *histogram, double p);

#endif
