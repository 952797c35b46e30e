/* The median of a few numbers. */
#ifndef OVERSELL_LOADTEST_STATS_MEDIAN_H
#define OVERSELL_LOADTEST_STATS_MEDIAN_H

#include <stddef.h>

/* Sorts VALUES; of an even COUNT the mean of the two in the middle. NaN if there are none. Any thread. */
double median_of(double *values, size_t count);

#endif
