/* Zipf's law: the k-th of N products is ordered in proportion to 1 / k^S. */
#ifndef OVERSELL_LOADTEST_STATS_ZIPF_H
#define OVERSELL_LOADTEST_STATS_ZIPF_H

#include <stdbool.h>
#include <stddef.h>

struct zipf {
    size_t count;
    double *up_to; /* [k]: the share of products 0…k */
};

/* COUNT at least 1; S 0 for all alike. False when out of memory. */
bool zipf_open(size_t count, double s, struct zipf *ret_zipf);
void zipf_close(struct zipf *zipf);
/* The product, from 0, that a number U (0 ≤ U < 1) chooses: uniform numbers choose by the law. */
size_t zipf_choose(const struct zipf *zipf, double u);

#endif
