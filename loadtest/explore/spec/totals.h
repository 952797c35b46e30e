/* The totals of a search: how many schedules oversold, waited, deadlocked …, and the simplest counterexamples. Pure functions. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SPEC_TOTALS_H
#define OVERSELL_LOADTEST_EXPLORE_SPEC_TOTALS_H

#include "loadtest/explore/exec/execution.h"
#include "loadtest/search/counterexamples.h"

enum { SWITCHES_MAX = 255 };

struct totals {
    uint64_t schedules; /* all that are known, also those that need not run since one that has run is alike */
    uint64_t run;
    /* How many of them have the member of struct ending that is named so: */
    uint64_t oversold, drifted, undersold, sold_rightly, waited, deadlocks, stuck, answers_wrong, failed,
        lock_stolen, two_holders, unbacked_grant, false_refusals, leaked;
    uint64_t bad;                           /* those for which execution_breaks_promise */
    uint64_t by_switches[SWITCHES_MAX + 1]; /* schedules with 0, 1, 2 … context switches */
    uint64_t transitions;
    /* One that breaks the promise before one in which only the lock was wrong, then by context switches, then by transitions. */
    struct counterexamples counterexamples;
};

/* Adds the result of the schedule that EXECUTION has just ended, for all that are like it as SEARCH knows. NULL: for this one alone. */
void totals_add(struct totals *totals, const struct execution *execution, struct search *search);
/* The number of context switches at QUANTILE of the schedules: 0 the fewest, 0.5 the median, 1 the most. */
unsigned totals_switches(const struct totals *totals, double quantile);

#endif
