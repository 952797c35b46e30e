/* Exploring one strategy: its search, and the row of the result that comes of it. */
#ifndef OVERSELL_LOADTEST_EXPLORE_JOB_H
#define OVERSELL_LOADTEST_EXPLORE_JOB_H

#include "loadtest/explore_tally.h"

#include <jansson.h>

/* What is asked of every strategy. */
struct explore_plan {
    int64_t actors, stock;
    int64_t quantities[ACTORS_MAX];
    int64_t limit;   /* schedules at most; 0: all */
    int64_t time_ms; /* for each strategy at most; 0: as long as it takes */
};

/* Why the strategy cannot be explored, or NULL. */
const char *explore_not_possible(const struct strategy *strategy);

/* Explores STRATEGY in SHOP, whose database is at URL. DONE_FD: told of every percent that has been covered, as a byte. The
 * row is a new reference; NULL, having said why on stderr: out of memory. */
json_t *explore_strategy(const struct explore_plan *plan, const struct strategy *strategy,
                         struct explore_shop *shop, const char *url,
                         void (*covered)(void *context, double share), void *context);

#endif
