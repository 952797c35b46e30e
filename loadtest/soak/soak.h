/* A long sale under one strategy, slice by slice, by one service; and whether the service has grown. */
#ifndef OVERSELL_LOADTEST_SOAK_SOAK_H
#define OVERSELL_LOADTEST_SOAK_SOAK_H

#include "loadtest/load/measure.h"
#include "loadtest/report/table.h"

/* What is sold, and how, under each strategy alike. */
struct soak_plan {
    int64_t orders; /* under each strategy */
    int64_t slice;  /* of them at most are one stock, which is sold out; then the product is reset */
    int64_t connections;
};

/* The service as the kernel sees it, at rest. */
struct soak_size {
    int64_t memory; /* bytes of heap and stacks that are resident */
    int64_t files;
};

/* What a slice was like, after it was sold. */
struct soak_point {
    int64_t orders; /* created until then */
    int64_t memory; /* bytes, as in struct soak_size, but not at rest */
    double orders_per_s;
    int64_t p99_us; /* of all answers, from the sending of each request; 0: unknown */
};

enum { SOAK_POINTS_MAX = 64 };

/* The slices, each STRIDE-th of them. */
struct soak_points {
    struct soak_point item[SOAK_POINTS_MAX];
    size_t count;
    int64_t seen, stride; /* 0: 1 */
};

/* Keeps a point; when there is no room, every second of them is forgotten, and of those to come. */
void soak_points_add(struct soak_points *points, const struct soak_point *point);

/* What came of one strategy. */
struct soak_counts {
    int64_t orders, slices;
    int64_t warm_up;      /* orders of the first slice, before the first look at the service's size */
    int64_t busy, errors; /* answers */
    int64_t oversold, negative;
    int64_t drift;      /* of the slice where it is worst */
    int64_t mismatched; /* slices after which there were other orders than clients had been told of */
    bool stalled;       /* a slice sold nothing */
    double seconds;
    struct soak_size start, end; /* after the first slice; after the last */
    struct soak_points points;
};

/* Sells under one strategy. False, having said why on stderr unless it was an interrupt. */
bool soak_strategy(struct testbed *testbed, const struct soak_plan *plan, const struct subject *subject,
                   struct progress *progress, struct soak_counts *ret_counts);

/* By how many bytes the service may grow over ORDERS orders. */
int64_t soak_growth_allowed(int64_t orders);
bool soak_is_flat(const struct soak_counts *counts);
bool soak_keeps_files(const struct soak_counts *counts);
bool soak_keeps_books(const struct soak_counts *counts);
/* The row of a result; COUNTS is NULL for a strategy that is not available. NULL when out of memory. */
json_t *soak_row_new(const struct subject *subject, const struct soak_counts *counts);

/* The pictures of its report; see struct result_kind. */
json_t *soak_charts(const json_t *document);
/* How the result is printed. */
extern const struct result_kind soak_result;

#endif
