/* Checks the sales of one stock for linearizability. */
#include "loadtest/faults/checker/sale_history.h"

#include <stdlib.h>

static int by_place(const void *a, const void *b)
{
    int64_t left = ((const struct sale *)a)->seen, right = ((const struct sale *)b)->seen;
    return (left < right) - (left > right);
}

size_t history_check(struct sale *sales, size_t count)
{
    size_t wrong = 0;
    int64_t latest_us = INT64_MIN; /* the latest begin of a sale with an earlier place */
    if (count > 0)
        qsort(sales, count, sizeof *sales, by_place);
    for (size_t i = 0; i < count; i++) {
        wrong += (i > 0 && sales[i].seen == sales[i - 1].seen) || sales[i].ended_us < latest_us;
        if (sales[i].began_us > latest_us)
            latest_us = sales[i].began_us;
    }
    return wrong;
}
