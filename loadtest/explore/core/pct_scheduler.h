/* Hunting for a bug at random: probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A
 * randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010). Pure. */
#ifndef OVERSELL_LOADTEST_EXPLORE_CORE_PCT_SCHEDULER_H
#define OVERSELL_LOADTEST_EXPLORE_CORE_PCT_SCHEDULER_H

#include "loadtest/explore/core/transition.h"

enum { PCT_DEPTH_MAX = 8 };

/* The order with the highest priority goes on, as long as it can; DEPTH − 1 times it becomes the last instead. A bug that
 * shows whenever DEPTH steps come in a certain order is found by each schedule with a chance of at least
 * 1 / (orders × moves^(DEPTH − 1)). */
struct pct {
    unsigned depth;                /* from 1 on; 0: not used */
    unsigned priority[ACTORS_MAX]; /* in this schedule: more is higher, all differ */
    size_t change_at[PCT_DEPTH_MAX];
    size_t fault_at; /* from this move on, whatever can happen happens */
};

/* Draws anew for a schedule that may have up to LENGTH moves; RANDOM: a state of base/prng.h. */
void pct_begin(struct pct *pct, uint64_t *random, size_t length);
/* Which of COUNT moves is to be made as number LEVEL, from 0 on. */
uint8_t pct_choose(struct pct *pct, uint64_t *random, size_t level, const struct transition *transitions,
                   size_t count);

#endif
