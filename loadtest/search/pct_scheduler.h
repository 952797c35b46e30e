/* Probabilistic concurrency testing (PCT): random schedules that find bugs of small depth sooner than uniform ones do.
 * Burckhardt, Kothari, Musuvathi, Nagarakatte: "A randomized scheduler with probabilistic guarantees of finding bugs",
 * ASPLOS 2010. Pure functions. */
#ifndef OVERSELL_LOADTEST_SEARCH_PCT_SCHEDULER_H
#define OVERSELL_LOADTEST_SEARCH_PCT_SCHEDULER_H

#include "loadtest/search/transition.h"

enum { PCT_DEPTH_MAX = 8 };

/* Every actor has a random priority, and the highest one that is enabled runs. At DEPTH − 1 random points the running actor
 * gets the lowest priority. A bug that needs DEPTH steps in a certain sequence is found by each schedule with a
 * probability of at least 1 / (actors × length^(DEPTH − 1)). */
struct pct {
    unsigned depth;                /* 1 to PCT_DEPTH_MAX; 0: not used */
    unsigned priority[ACTORS_MAX]; /* in this schedule: a higher number runs first; all differ */
    size_t change_at
        [PCT_DEPTH_MAX]; /* number of the transition before which the running actor loses its priority */
    size_t fault_at;     /* from this transition on, a fault happens as soon as one is enabled */
};

/* Draws the priorities and change points of the next schedule, of up to LENGTH transitions. RANDOM: state of base/prng.h. */
void pct_begin(struct pct *pct, uint64_t *random, size_t length);
/* Returns which of COUNT enabled transitions is number LEVEL of the schedule, from 0 on. */
uint8_t pct_choose(struct pct *pct, uint64_t *random, size_t level, const struct transition *transitions,
                   size_t count);

#endif
