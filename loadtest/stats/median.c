/* The median of a few numbers. */
#include "loadtest/stats/median.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return count == 0 ? NAN : (values[(count - 1) / 2] + values[count / 2]) / 2;
}
