/* What the schedules of one strategy came to, added up; and the plainest of those that went wrong. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SPEC_TOTALS_H
#define OVERSELL_LOADTEST_EXPLORE_SPEC_TOTALS_H

#include "loadtest/explore/exec/execution.h"

enum { SWITCHES_MAX = 255, COUNTEREXAMPLES_MAX = 20 };

/* A schedule that went wrong. Those that are bad are plainer than those whose lock was at fault and nothing came of it; of
 * them the one with the fewest switches is, then with the fewest moves. */
struct counterexample {
    struct transition transitions[DEPTH_MAX];
    size_t length;
    unsigned switches;
    bool is_bad;
};

struct totals {
    uint64_t schedules;
    /* How many of them … */
    uint64_t oversold, drifted, undersold, sold_rightly, waited, deadlocks, stuck, answers_wrong, failed,
        lock_stolen, two_holders, unbacked_grant, false_refusals, leaked;
    uint64_t bad; /* any that execution_breaks_promise */
    uint64_t by_switches[SWITCHES_MAX + 1];
    uint64_t transitions;
    struct counterexample counterexamples[COUNTEREXAMPLES_MAX]; /* the plainest first */
    size_t counterexample_count, counterexamples_wanted;        /* 0: one */
};

/* Adds the schedule that EXECUTION has just ended. */
void totals_add(struct totals *totals, const struct execution *execution);
/* So many switches have the schedules with the fewest (0), with the most (1), the one in the middle (0.5). */
unsigned totals_switches(const struct totals *totals, double quantile);

#endif
