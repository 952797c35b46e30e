/* The faults, each a row of data. */
#include "loadtest/fault.h"

#include <string.h>

/* ---- what is expected ---------------------------------------------------------------------------------- */

/* A killed process takes its connections with it, and with lock-row its lock: the order's own session may commit after. */
static unsigned expect_kill(const struct strategy *strategy)
{
    if (strcmp(strategy->name, "redis-setnx-forever") == 0)
        return ORDERS_KEPT | SEEN_STUCK;
    if (strategy->guarantee == SAFE)
        return ALL_KEPT | I4_LOCK_FREED;
    if (strategy->guarantee != WHILE_LEASE_HOLDS)
        return ORDERS_KEPT;
    bool dies_with_connection = (fault_perils(strategy) & PERIL_DISCONNECT) &&
                                fault_lock_on(strategy, "lock-database");
    return ORDERS_KEPT | I4_LOCK_FREED | (dies_with_connection ? 0u : STOCK_KEPT);
}

static unsigned expect_pause(const struct strategy *strategy)
{
    return fault_expect_peril(strategy, PERIL_PAUSE, NULL);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

/* clang-format off */
const struct fault faults[] = {
    {.name = "kill", .does = "a service is killed at a random moment (kill -9), and started again",
     .story = STORY_CHURN, .expected = expect_kill, .strike = strike_kill,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 200},
    {.name = "pause", .does = "a service that holds a lock and has read sleeps for up to twice its lease (SIGSTOP)",
     .story = STORY_OVERTAKE, .expected = expect_pause, .strike = strike_pause, .after = after_pause,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 10},
};
/* clang-format on */

const size_t fault_count = sizeof faults / sizeof faults[0];
