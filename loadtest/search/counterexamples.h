/* Counterexamples: the schedules that a search has to show, the worst and then the simplest first. Pure functions. */
#ifndef OVERSELL_LOADTEST_SEARCH_COUNTEREXAMPLES_H
#define OVERSELL_LOADTEST_SEARCH_COUNTEREXAMPLES_H

#include "loadtest/search/depth_first_search.h"

enum { COUNTEREXAMPLES_MAX = 20 };

struct counterexample {
    struct transition transitions[DEPTH_MAX];
    size_t length;
    unsigned badness;  /* what it breaks, as the caller counts it: more is worse */
    unsigned switches; /* context switches */
    /* to follow it, as the caller counts it: of two that are equally bad, the one with less is shown */
    unsigned effort;
    /* Of requests to a user's service: connections of its pool that further requests occupy, and whether one of them is closed later. */
    size_t occupied;
    bool frees;
};

/* Plain memory; all zero: none. */
struct counterexamples {
    struct counterexample item[COUNTEREXAMPLES_MAX];
    size_t count, most; /* as many as are kept; 0 means 1 */
};

/* Is ONE to be shown before OTHER? Of two that are equally bad and simple, the one that a search comes to first. */
bool counterexample_is_before(const struct counterexample *one, const struct counterexample *other);
/* Puts NEXT in its place, behind those that are equally bad and simple, or leaves it out. Returns the place: 0 is the first. */
size_t counterexamples_keep(struct counterexamples *kept, const struct counterexample *next);

#endif
