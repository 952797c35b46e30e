/* The history of a stock, checked for one order of its sales that explains what each of them saw. */
#ifndef OVERSELL_LOADTEST_FAULTS_CHECKER_SALE_HISTORY_H
#define OVERSELL_LOADTEST_FAULTS_CHECKER_SALE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

/* One sale of one unit: what it saw in stock, and between which moments it happened, as its client knows. */
struct sale {
    int64_t seen, began_us, ended_us;
};

/* How many sales no such order explains. Since every sale takes one unit and none is put back, the stock that it saw is its
 * place: the order is that of the stock seen, from the most to the least. It is no order where two saw the same, and not
 * that of real time where a sale had ended before one began that comes earlier. (So the check is linear, where that of any
 * register is not: Wing and Gong 1993.) Sorts SALES. */
size_t history_check(struct sale *sales, size_t count);

#endif
