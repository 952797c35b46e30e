/* Zipf's law: the k-th of N products is ordered in proportion to 1 / k^S. */
#include "loadtest/stats/zipf.h"

#include <math.h>
#include <stdlib.h>

bool zipf_open(size_t count, double s, struct zipf *ret_zipf)
{
    double *up_to = calloc(count, sizeof *up_to);
    if (!up_to)
        return false;
    double sum = 0;
    for (size_t k = 0; k < count; k++)
        up_to[k] = sum += pow((double)(k + 1), -s);
    for (size_t k = 0; k < count; k++)
        up_to[k] /= sum;
    *ret_zipf = (struct zipf){.count = count, .up_to = up_to};
    return true;
}

void zipf_close(struct zipf *zipf)
{
    free(zipf->up_to);
    *zipf = (struct zipf){0};
}

size_t zipf_choose(const struct zipf *zipf, double u)
{
    size_t low = 0, high = zipf->count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u < zipf->up_to[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
