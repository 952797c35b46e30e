/* Compares the history of a fault run with the database: what clients were told, and what there is. */
#ifndef OVERSELL_LOADTEST_FAULTS_CHECKER_CHECKER_H
#define OVERSELL_LOADTEST_FAULTS_CHECKER_CHECKER_H

#include "loadtest/faults/testbed/fault_testbed.h"
#include "loadtest/faults/testbed/history.h"

/* Of one strategy; several cycles are added up. */
struct fault_counts {
    int64_t intents;
    int64_t acknowledged; /* told 201 or 202 */
    int64_t unclear;      /* told nothing that settles it */
    int64_t refused;      /* told to come again, in the end */
    int64_t turned_away;  /* told "sold out" while units were left, or sold to one who came later */
    int64_t lost;         /* told of an order, and it is not there */
    int64_t duplicated;   /* keys with two orders */
    int64_t denied;       /* orders whose client was told that nothing was sold, or that nobody wanted */
    int64_t wrong;        /* answers that had no type, or did not come in bounded time */
    int64_t
        disordered; /* orders that no order of the sales explains, see loadtest/faults/checker/sale_history.h; means nothing where a product's stock
                           is not one number */
    int64_t sections; /* critical sections whose traces were looked at … */
    int64_t overlaps; /* … and those of them that overlap, see loadtest/faults/checker/sections.h */
    int64_t orders, oversold;
    int64_t amounts_wrong; /* orders whose amount is not the price times the quantity of their items */
    int64_t left;          /* of the stock; of one cycle alone */
    int64_t drift;         /* sold − (initial − left): the worst of the cycles */
};

/* Adds what a cycle came to. */
void fault_counts_add(struct fault_counts *sum, const struct fault_counts *counts);

/* Waits until nothing is under way in the database any more and what is written behind has come, and then adds what this
 * cycle's intents and the products FIRST, FIRST + 1, … (one for each of COUNT strategies) say to RET_TALLIES. False, having
 * said why. */
bool fault_check(struct fault_testbed *testbed, struct fault_history *history, int64_t first, size_t count,
                 struct fault_counts *ret_counts);
/* Sessions of orders that have read and not yet written; negative, having said why: it cannot be asked. */
int64_t fault_readers(struct fault_testbed *testbed);

#endif
