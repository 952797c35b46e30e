/* Explores one strategy: one to four campaigns, whose results become a row of the command's result. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_EXPLORE_STRATEGY_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_EXPLORE_STRATEGY_H

#include "loadtest/explore/run/campaign.h"
#include "loadtest/explore/spec/explore_verdict.h"

/* The settings for every strategy. */
struct explore_plan {
    int64_t actors, stock;
    int64_t quantities[ACTORS_MAX];
    unsigned faults; /* as in struct execution_settings */
    unsigned never;  /* as in struct execution_settings */
    struct campaign_limits limits;
    const char *checkpoints; /* their folder; NULL: none */
    /* runs further searches: with larger orders, and of fair locks with three orders; see below */
    bool twice;
    bool three, enough; /* this is the search with three orders, or with enough for all */
};

/* The second search: two orders of two units, three in stock, so that only one can be served. It shows what orders of one unit
 * cannot: errors in quantities, units that are left over, waits that time out. */
enum { LARGER_STOCK = 3, LARGER_QUANTITY = 2 };

/* The third search: two orders of one unit, and enough for both. Then no serial execution refuses one of them as sold out, so no schedule may. */
enum { ENOUGH_STOCK = 2 };

/* The fourth search, of a lock that declares to be fair: its queue has two waiters only if there are three orders. */
enum { THREE_ORDERS = 3 };

/* Why the strategy cannot be explored, or NULL. */
const char *explore_not_possible(const struct strategy *strategy);

/* Explores STRATEGY in SCHEMA, whose database is at URL. PROGRESS may be NULL. The row is a new reference; NULL: out of memory. */
json_t *explore_strategy(const struct explore_plan *plan, const struct strategy *strategy,
                         struct product_schema *schema, const char *url, campaign_progress *progress,
                         void *context);

#endif
