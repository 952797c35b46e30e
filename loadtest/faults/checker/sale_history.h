/* Checks the sales of one stock for linearizability: is there a sequence of the sales that explains the stock that each one read? */
#ifndef OVERSELL_LOADTEST_FAULTS_CHECKER_SALE_HISTORY_H
#define OVERSELL_LOADTEST_FAULTS_CHECKER_SALE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

/* One sale: the stock that it read, and when its client sent the request and got the answer (monotonic). */
struct sale {
    int64_t seen, began_us, ended_us;
};

/* Returns how many sales no such sequence explains. Every sale takes the same number of units and none comes back, so the stock that
 * a sale read gives its place in the sequence. A sale is wrong if another one read the same stock, or if it ended before a sale
 * began that has an earlier place. (So this needs linear time, unlike the check of an arbitrary register: Wing and Gong 1993.)
 * Sorts SALES. Pure. */
size_t history_check(struct sale *sales, size_t count);

#endif
