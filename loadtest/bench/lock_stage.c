/* Measurements of locks, on the servers of the stage's private stack and in this process. */
#include "loadtest/bench/stage.h"
#include "loadtest/testbed/servers.h"

#include <stdio.h>

/* Begins a measurement of the lock; false where its server is not there. */
static bool begin(struct stage *stage, const struct lock_driver *driver)
{
    stage->unavailable[0] = 0;
    return server_is_up(&stage->base, driver->server, stage->unavailable, sizeof stage->unavailable);
}

/* Ends one that measured RATE; nothing can be held against a rate of zero. */
static bool end(struct stage *stage, bool well, double rate)
{
    if (well && rate <= 0) {
        snprintf(stage->unavailable, sizeof stage->unavailable, "not once in all the time");
        return false;
    }
    if (well)
        progress_step_done(stage->progress);
    return well;
}

bool stage_lock_cycles(struct stage *stage, const struct lock_driver *driver, enum lock_rivalry rivalry,
                       size_t threads, int64_t ms, double *ret_per_s)
{
    double rate = 0;
    progress_label(stage->progress, "%s, %zu thread%s%s", driver->name, threads, threads == 1 ? "" : "s",
                   rivalry == ONE_KEY ? " for one key" : "");
    bool well = begin(stage, driver) &&
                lock_cycles(driver, rivalry, threads, ms, stage->progress, &rate, stage->unavailable);
    *ret_per_s = rate;
    return end(stage, well, rate);
}

bool stage_against(struct stage *stage, const struct lock_driver *driver, against_fn *against,
                   const char *name, size_t threads, double *ret_per_s)
{
    double rate = 0;
    progress_label(stage->progress, "%s, beside %s", name, driver->name);
    bool well = begin(stage, driver) && against(&stage->base.addresses, threads, stage->seconds * 1000,
                                                stage->progress, &rate, stage->unavailable);
    *ret_per_s = rate;
    return end(stage, well, rate);
}

bool stage_hand_overs(struct stage *stage, const struct lock_driver *driver, size_t threads, int64_t ms,
                      struct hand_overs *ret_hand_overs)
{
    struct hand_overs seen = {0};
    progress_label(stage->progress, "%s, from hand to hand by %zu", driver->name, threads);
    bool well = begin(stage, driver) &&
                lock_hand_overs(driver, threads, ms, stage->progress, &seen, stage->unavailable);
    *ret_hand_overs = seen;
    return end(stage, well, seen.median_ms);
}
