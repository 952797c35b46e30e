/* Compares the history of a fault run with the database: the answers that clients got, with the orders that exist. */
#ifndef OVERSELL_LOADTEST_FAULTS_CHECKER_CHECKER_H
#define OVERSELL_LOADTEST_FAULTS_CHECKER_CHECKER_H

#include "loadtest/faults/testbed/fault_testbed.h"
#include "loadtest/faults/testbed/history.h"

/* What was found about one strategy, in one cycle or summed over several. All members are int64_t. */
struct fault_counts {
    int64_t intents;      /* orders that a client wanted */
    int64_t acknowledged; /* the client got 201 or 202 */
    int64_t unclear;      /* the client never learned the outcome */
    int64_t critical;     /* the fault met it in its critical moment: see struct fault_strike */
    int64_t refused;      /* the last answer asked the client to try again */
    int64_t turned_away;  /* answered "sold out" while units were left, or were sold to a later order */
    int64_t lost;         /* acknowledged orders that are not in the database */
    int64_t duplicated;   /* keys with two orders */
    int64_t denied;       /* orders in the database that were refused, or that no client wanted */
    int64_t wrong;        /* answers without a type, or that took too long */
    /* Orders that no sequence of the sales explains (sale_history.h); meaningless if the stock is not one number. */
    int64_t disordered;
    int64_t sections; /* critical sections whose traces were checked … */
    int64_t overlaps; /* … and those that began during another one (sections.h) */
    int64_t orders, oversold;
    int64_t amounts_wrong; /* orders whose amount is not the price times the quantity of their items */
    int64_t gone;          /* units that are neither in stock nor in orders: drifts below zero */
    /* Not sums: */
    int64_t left;  /* in stock, after one cycle */
    int64_t drift; /* sold − (initial − left), of the cycle where it is worst */
};

/* Adds the counts of a cycle to SUM. */
void fault_counts_add(struct fault_counts *sum, const struct fault_counts *counts);

/* Waits until no order is in progress in the database and all accepted orders are written. Then compares the intents of this cycle
 * with the products FIRST, FIRST + 1, …, one for each of COUNT strategies, and adds to RET_COUNTS. False, with the reason on
 * stderr. */
bool fault_check(struct fault_testbed *testbed, struct fault_history *history, int64_t first, size_t count,
                 struct fault_counts *ret_counts);
/* The number of sessions whose order has read and not yet written; negative, with the reason on stderr, on a failure. */
int64_t fault_readers(struct fault_testbed *testbed);

#endif
