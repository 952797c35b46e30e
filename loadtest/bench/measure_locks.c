/* Measures locks, on the servers of the private stack and in this process. */
#include "loadtest/bench/bench_testbed.h"
#include "loadtest/testbed/servers.h"
#include "lock/registry.h"

#include <stdio.h>

#define WARM_UP_THREADS 8
#define WARM_UP_MEASUREMENTS 5 /* the length of the warm-up */

/* ZooKeeper's Java machine compiles its code while it runs: in its first ten seconds under load, the rate grows threefold.
 * Without a warm-up, the first measurements would show that. */
static bool warm_up_zookeeper(struct bench_testbed *bench)
{
    double rate;
    progress_label(bench->progress, "warming up ZooKeeper");
    bench->zookeeper_is_warm = lock_cycles(&zookeeper_queue, ONE_KEY, WARM_UP_THREADS,
                                           bench->seconds * 1000 * WARM_UP_MEASUREMENTS, NULL, &rate,
                                           bench->unavailable);
    return bench->zookeeper_is_warm;
}

/* Begins a measurement; false if the server does not run. */
static bool begin(struct bench_testbed *bench, const struct lock_server *server)
{
    bench->unavailable[0] = 0;
    if (!server_is_up(&bench->base, server, bench->unavailable, sizeof bench->unavailable))
        return false;
    return server != zookeeper_queue.server || bench->zookeeper_is_warm || warm_up_zookeeper(bench);
}

/* Ends one that measured RATE; nothing can be held against a rate of zero. */
static bool end(struct bench_testbed *bench, bool well, double rate)
{
    if (well && rate <= 0) {
        snprintf(bench->unavailable, sizeof bench->unavailable, "the lock was not acquired once");
        return false;
    }
    if (well)
        progress_step_done(bench->progress);
    return well;
}

bool measure_lock_cycles(struct bench_testbed *bench, const struct lock_driver *driver,
                         enum lock_rivalry rivalry, size_t threads, int64_t ms, double *ret_per_s)
{
    double rate = 0;
    progress_label(bench->progress, "%s, %zu thread%s%s", driver->name, threads, threads == 1 ? "" : "s",
                   rivalry == ONE_KEY ? " on one key" : "");
    bool well = begin(bench, driver->server) &&
                lock_cycles(driver, rivalry, threads, ms, bench->progress, &rate, bench->unavailable);
    *ret_per_s = rate;
    return end(bench, well, rate);
}

bool measure_reference(struct bench_testbed *bench, const struct lock_server *server, reference_fn *reference,
                       const char *case_name, const char *name, size_t threads, double *ret_per_s)
{
    double rate = 0;
    progress_label(bench->progress, "%s: %s", case_name, name);
    bool well = begin(bench, server) && reference(&bench->base.addresses, threads, bench->seconds * 1000,
                                                  bench->progress, &rate, bench->unavailable);
    *ret_per_s = rate;
    return end(bench, well, rate);
}

bool measure_hand_overs(struct bench_testbed *bench, const struct lock_driver *driver, size_t threads,
                        int64_t ms, struct hand_overs *ret_hand_overs)
{
    struct hand_overs seen = {0};
    progress_label(bench->progress, "%s, hand-over among %zu threads", driver->name, threads);
    bool well = begin(bench, driver->server) &&
                lock_hand_overs(driver, threads, ms, bench->progress, &seen, bench->unavailable);
    *ret_hand_overs = seen;
    return end(bench, well, seen.median_ms);
}
