/* A long sale under one strategy, slice by slice: each slice is sold out, its books are read, and the product is reset, so
 * that neither the database nor the figures grow with the number of orders. */
#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/process/usage.h"
#include "loadtest/soak/soak.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SLICES_LEAST 4
#define SETTLED 2       /* "sold out" in a row, for each connection: nothing more is to come */
#define ORDERS_A_UNIT 4 /* sent at most: some strategies send many clients away */
#define SPARE_ORDERS 4096
#define PATIENCE_MS 120000
#define REST_MS 5000 /* until what clients have left is gone */
#define LOOK_MS 20

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What is shown meanwhile. */
struct watched {
    struct progress *progress;
    int64_t before, wanted;
};

static void show(void *context, int64_t answers, int64_t created, double elapsed_s)
{
    const struct watched *watched = context;
    char detail[64];
    (void)answers, (void)elapsed_s;
    snprintf(detail, sizeof detail, ": %" PRId64 " orders", watched->before + created);
    progress_count(watched->progress, watched->before + created);
    progress_update(watched->progress, (double)(watched->before + created) / (double)watched->wanted, detail);
}

/* Once it has as few open files as WANTED, or no longer fewer from one look to the next where that is 0. */
static bool size_at_rest(struct testbed *testbed, int64_t wanted, struct soak_size *ret_size)
{
    pid_t pid = testbed->services[0].pid;
    int64_t end_us = monotonic_us() + (int64_t)REST_MS * 1000, last = INT64_MAX;
    while (process_files(pid, &ret_size->files)) {
        bool rests = wanted > 0 ? ret_size->files <= wanted : ret_size->files >= last;
        if (rests || monotonic_us() > end_us)
            return process_memory(pid, "RssAnon", &ret_size->memory);
        last = ret_size->files;
        if (!sleep_unless_interrupted(LOOK_MS))
            return false;
    }
    return false;
}

static void add_books_to(struct soak_counts *counts, const struct books *books, const struct answers *answers)
{
    counts->oversold += books->oversold;
    counts->negative += books->negative;
    if (llabs(books->drift) > llabs(counts->drift))
        counts->drift = books->drift;
    counts->mismatched += !books_match(books, answers->created, answers->unknown + answers->unanswered);
    counts->stalled |= answers->created == 0;
}

static bool sell_slice(struct testbed *testbed, const struct subject *subject, int64_t stock,
                       int64_t connections, struct watched *watched, struct soak_counts *counts)
{
    const struct load load = {
        .testbed = testbed,
        .connections = connections,
        .quantity = 1,
        .product = 1,
        .requests = ORDERS_A_UNIT * stock + SPARE_ORDERS,
        .settled = SETTLED * connections,
        .patience_ms = PATIENCE_MS,
        .progress = show,
        .context = watched,
    };
    struct load_result result;
    struct books books;
    if (!set_stock(testbed, subject, load.product, stock) || !load_run(&load, &result) ||
        !settled_books(testbed, load.product, &books))
        return false;
    counts->orders += result.answers.created;
    counts->slices++;
    counts->busy += result.answers.busy;
    counts->errors += result.answers.errors;
    counts->seconds += result.elapsed_s;
    struct soak_point point = {
        .orders = counts->orders,
        .orders_per_s = result.elapsed_s > 0 ? (double)result.answers.created / result.elapsed_s : 0,
        .p99_us = result.latency_us[LOAD_P99],
    };
    if (!process_memory(testbed->services[0].pid, "RssAnon", &point.memory))
        return false;
    soak_points_add(&counts->points, &point);
    add_books_to(counts, &books, &result.answers);
    return true;
}

/* What a strategy has shown until an interrupt: it is no row, because memory counts at the end only. */
static void say_how_far(const struct subject *subject, const struct soak_counts *counts)
{
    progress_wipe();
    if (interrupted())
        complain("%s was interrupted after %" PRId64 " stocks with %" PRId64 " orders: %" PRId64
                 " units oversold, %" PRId64 " stocks that differ from the answers",
                 subject->name, counts->slices, counts->orders, counts->oversold, counts->mismatched);
}

bool soak_strategy(struct testbed *testbed, const struct soak_plan *plan, const struct subject *subject,
                   struct progress *progress, struct soak_counts *ret_counts)
{
    int64_t slice = least(plan->slice,
                          least(subject->most, (plan->orders + SLICES_LEAST - 1) / SLICES_LEAST));
    struct soak_counts counts = {0};
    struct watched watched = {.progress = progress, .wanted = plan->orders};
    progress_label(progress, "%s", subject->name);
    if (!switch_strategy(testbed, 0, subject, 0, SAME_IN_TURN, NULL))
        return false;
    while (counts.orders < plan->orders && !counts.stalled) {
        watched.before = counts.orders;
        if (!sell_slice(testbed, subject, least(slice, plan->orders - counts.orders), plan->connections,
                        &watched, &counts)) {
            say_how_far(subject, &counts);
            return false;
        }
        if (counts.slices > 1)
            continue;
        counts.warm_up = counts.orders;
        if (!size_at_rest(testbed, 0, &counts.start))
            return false;
    }
    if (!size_at_rest(testbed, counts.start.files, &counts.end))
        return false;
    *ret_counts = counts;
    return true;
}
