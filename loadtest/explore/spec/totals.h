/* The totals of a search: how many schedules oversold, waited, deadlocked …, and the simplest counterexamples. Pure functions. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SPEC_TOTALS_H
#define OVERSELL_LOADTEST_EXPLORE_SPEC_TOTALS_H

#include "loadtest/explore/exec/execution.h"

enum { SWITCHES_MAX = 255, COUNTEREXAMPLES_MAX = 20 };

/* A counterexample: a schedule that breaks an invariant. The simplest is shown: one that did harm before one in which only the
 * lock was wrong, then the one with the fewest context switches, then the one with the fewest transitions. */
struct counterexample {
    struct transition transitions[DEPTH_MAX];
    size_t length;
    unsigned switches; /* context switches */
    bool is_bad;       /* it breaks the promise; otherwise only its lock was wrong */
};

struct totals {
    uint64_t schedules;
    /* How many of them have the member of struct ending that is named so: */
    uint64_t oversold, drifted, undersold, sold_rightly, waited, deadlocks, stuck, answers_wrong, failed,
        lock_stolen, two_holders, unbacked_grant, false_refusals, leaked;
    uint64_t bad;                           /* those for which execution_breaks_promise */
    uint64_t by_switches[SWITCHES_MAX + 1]; /* schedules with 0, 1, 2 … context switches */
    uint64_t transitions;
    struct counterexample counterexamples[COUNTEREXAMPLES_MAX]; /* the simplest first */
    size_t counterexample_count, counterexamples_wanted;        /* wanted: 0 means 1 */
};

/* Adds the result of the schedule that EXECUTION has just ended. */
void totals_add(struct totals *totals, const struct execution *execution);
/* The number of context switches at QUANTILE of the schedules: 0 the fewest, 0.5 the median, 1 the most. */
unsigned totals_switches(const struct totals *totals, double quantile);

#endif
