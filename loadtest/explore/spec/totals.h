/* What the schedules of one strategy came to, added up; and the plainest of those that went wrong. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SPEC_TOTALS_H
#define OVERSELL_LOADTEST_EXPLORE_SPEC_TOTALS_H

#include "loadtest/explore/exec/execution.h"

enum { SWITCHES_MAX = 255, WITNESSES_MAX = 20 };

/* A schedule that went wrong. Those that are bad are plainer than those whose lock was at fault and nothing came of it; of
 * them the one with the fewest switches is, then with the fewest moves. */
struct witness {
    struct transition transitions[DEPTH_MAX];
    size_t length;
    unsigned switches;
    bool is_bad;
};

struct tally {
    uint64_t schedules;
    /* How many of them … */
    uint64_t oversold, drifted, undersold, rightly, waited, deadlocks, stuck, answers_wrong, failed, robbed,
        two_holders, hollow, false_refusals, leaked;
    uint64_t bad; /* any that tally_is_bad */
    uint64_t by_switches[SWITCHES_MAX + 1];
    uint64_t transitions;
    struct witness witnesses[WITNESSES_MAX]; /* the plainest first */
    size_t witness_count, witness_most;      /* 0: one */
};

/* Did something go wrong in the schedule that EXECUTION has just ended? */
bool tally_is_bad(const struct execution *execution);
/* Adds the schedule that EXECUTION has just ended. */
void tally_add(struct tally *tally, const struct execution *execution);
/* So many switches have the schedules with the fewest (0), with the most (1), the one in the middle (0.5). */
unsigned tally_switches(const struct tally *tally, double quantile);

/* What a row is found to be. */
enum explore_verdict {
    EXPLORE_OK,
    EXPLORE_OVERSOLD_AS_EXPECTED, /* its flaw was shown */
    EXPLORE_UNKNOWN,              /* nothing wrong was seen, but not all was looked at */
    EXPLORE_UNAVAILABLE,
    EXPLORE_NOT_CAUGHT, /* its flaw should have been shown, and was not */
    EXPLORE_BROKEN,     /* it promised more than it kept */
};

enum explore_verdict explore_verdict(const struct execution_settings *settings, const struct tally *tally,
                                     bool complete);
const char *explore_verdict_name(enum explore_verdict verdict);
/* The verdict of a row that was searched twice with different settings. */
enum explore_verdict explore_verdict_of_both(enum explore_verdict one, enum explore_verdict other);

/* Why a row is EXPLORE_BROKEN: what went wrong, and in how many schedules. Written to RET_TEXT of SIZE bytes, which is
 * returned. */
const char *explore_verdict_why(const struct execution_settings *settings, const struct tally *tally,
                                char *ret_text, size_t size);

#endif
