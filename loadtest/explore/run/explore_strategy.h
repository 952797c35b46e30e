/* Exploring one strategy: the row of the result that comes of it. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_EXPLORE_STRATEGY_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_EXPLORE_STRATEGY_H

#include "loadtest/explore/run/campaign.h"
#include "loadtest/explore/spec/explore_verdict.h"

/* What is asked of every strategy. */
struct explore_plan {
    int64_t actors, stock;
    int64_t quantities[ACTORS_MAX];
    unsigned faults; /* as execution_settings: 0, SHOWN_BY_EXPIRY, SHOWN_BY_CRASH or WAITS_END */
    unsigned never;  /* as execution_settings */
    struct campaign_limits limits;
    const char *checkpoints; /* a folder for them; NULL: none */
    bool twice;              /* runs a second search with larger orders: see below */
};

/* What one unit for two orders of one cannot show: quantities, units that are left over, waits that end in vain. Only one of
 * the two can have what it wants. */
enum { LARGER_STOCK = 3, LARGER_QUANTITY = 2 };

/* Why the strategy cannot be explored, or NULL. */
const char *explore_not_possible(const struct strategy *strategy);

/* Explores STRATEGY in SCHEMA, whose database is at URL. The row is a new reference; NULL: out of memory. */
json_t *explore_strategy(const struct explore_plan *plan, const struct strategy *strategy,
                         struct product_schema *schema, const char *url, campaign_progress *progress,
                         void *context);

#endif
