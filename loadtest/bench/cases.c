/* The table of the ratios that the benchmark measures: the two sides of each, and its goal. */
#include "loadtest/bench/cases.h"

#include "loadtest/cli/selection.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW_CONNECTIONS 16
#define BATCH_CONNECTIONS 256 /* so that there is something to combine */
#define MANY_CONNECTIONS 512
#define OPEN_PAGES 30
#define MEMORY_CONNECTIONS 1000

#define CONTENDERS 8 /* for one key */
#define COUNTED_ORDERS 20000
#define PATTERN_SIZE 128 /* longer than any name; a longer pattern matches nothing */

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The facts of an order's calls, and of a hand-over. */
enum { ALLOCATIONS, ROUND_TRIPS };
enum { HAND_OVER_MS, ALONE_MS, WAKE_UPS, TOGETHER };

/* Tried in short measurements; the counts that do best are used. */
static const int64_t CLIENTS[] = {1, 2, 4, 8, 16, 32};
static const int64_t WORKERS[] = {1, 2, 3, 4, 8};
static const int64_t LIMITS[] = {1, 2, 3, 4};

#define TRY_SECONDS 1

/* ---- the two sides -------------------------------------------------------------------------------------------- */

static bool service_load(struct bench_testbed *bench, const struct bench_case *row,
                         const struct script *script, int64_t workers, int64_t product_limit, int64_t seconds,
                         double *ret_per_s)
{
    const struct service_load load = {
        .strategy = script->strategy,
        .counted = row->stock > 0 ? COUNT_CREATED : COUNT_SOLD_OUT,
        .first = row->first,
        .products = row->products,
        .stock = row->stock,
        .workers = workers,
        .product_limit = product_limit,
        .connections = row->connections,
        .seconds = seconds,
    };
    return measure_service(bench, &load, ret_per_s);
}

static bool service_side(struct bench_testbed *bench, const struct bench_case *row, int64_t workers,
                         int64_t seconds, double *ret_per_s)
{
    return service_load(bench, row, row->script, workers, 0, seconds, ret_per_s);
}

static bool rival_side(struct bench_testbed *bench, const struct bench_case *row, int64_t workers,
                       int64_t seconds, double *ret_per_s)
{
    return service_load(bench, row, row->rival, workers, 0, seconds, ret_per_s);
}

/* The service with its default workers, so many orders of the product at once. */
static bool limited_side(struct bench_testbed *bench, const struct bench_case *row, int64_t product_limit,
                         int64_t seconds, double *ret_per_s)
{
    return service_load(bench, row, row->script, 0, product_limit, seconds, ret_per_s);
}

static bool pgbench_side(struct bench_testbed *bench, const struct bench_case *row, int64_t clients,
                         int64_t seconds, double *ret_per_s)
{
    return measure_pgbench(bench, row->script, row->first, row->products, row->stock, clients, seconds,
                           ret_per_s);
}

typedef bool side_fn(struct bench_testbed *bench, const struct bench_case *row, int64_t count,
                     int64_t seconds, double *ret_per_s);

static bool best_count(struct bench_testbed *bench, const struct bench_case *row, side_fn *side,
                       const int64_t *counts, size_t count, int64_t *ret_best)
{
    double best = 0, per_s;
    for (size_t i = 0; i < count; i++) {
        if (!side(bench, row, counts[i], TRY_SECONDS, &per_s))
            return false;
        if (i == 0 || per_s > best) {
            best = per_s;
            *ret_best = counts[i];
        }
    }
    return true;
}

static bool tune_both(struct bench_testbed *bench, const struct bench_case *row, struct tuning *ret_tuning)
{
    return best_count(bench, row, pgbench_side, CLIENTS, COUNT(CLIENTS), &ret_tuning->clients) &&
           best_count(bench, row, service_side, WORKERS, COUNT(WORKERS), &ret_tuning->workers);
}

static bool tune_rivals(struct bench_testbed *bench, const struct bench_case *row, struct tuning *ret_tuning)
{
    return best_count(bench, row, rival_side, WORKERS, COUNT(WORKERS), &ret_tuning->rival_workers) &&
           best_count(bench, row, service_side, WORKERS, COUNT(WORKERS), &ret_tuning->workers);
}

static bool tune_limit(struct bench_testbed *bench, const struct bench_case *row, struct tuning *ret_tuning)
{
    return best_count(bench, row, pgbench_side, CLIENTS, COUNT(CLIENTS), &ret_tuning->clients) &&
           best_count(bench, row, limited_side, LIMITS, COUNT(LIMITS), &ret_tuning->product_limit);
}

/* ---- the cases ------------------------------------------------------------------------------------------------ */

static bool against_pgbench(struct bench_testbed *bench, const struct bench_case *row,
                            const struct tuning *tuning, struct sample *sample)
{
    if (!service_side(bench, row, tuning->workers, bench->seconds, &sample->numerator) ||
        !pgbench_side(bench, row, tuning->clients, bench->seconds, &sample->denominator))
        return false;
    sample->value = sample->numerator / sample->denominator;
    return true;
}

static bool many_against_few(struct bench_testbed *bench, const struct bench_case *row,
                             const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    struct service_load load = {
        .strategy = row->script->strategy,
        .counted = COUNT_CREATED,
        .first = row->first,
        .products = row->products,
        .stock = row->stock,
        .seconds = bench->seconds,
        .connections = MANY_CONNECTIONS,
    };
    if (!measure_service(bench, &load, &sample->numerator))
        return false;
    load.connections = FEW_CONNECTIONS;
    if (!measure_service(bench, &load, &sample->denominator))
        return false;
    sample->value = sample->numerator / sample->denominator;
    return true;
}

static bool with_pages_open(struct bench_testbed *bench, const struct bench_case *row,
                            const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    struct service_load load = {
        .strategy = row->script->strategy,
        .counted = COUNT_CREATED,
        .first = row->first,
        .products = row->products,
        .stock = row->stock,
        .seconds = bench->seconds,
        .pages = OPEN_PAGES,
    };
    if (!measure_service(bench, &load, &sample->numerator))
        return false;
    load.pages = 0;
    if (!measure_service(bench, &load, &sample->denominator))
        return false;
    sample->value = sample->numerator / sample->denominator;
    return true;
}

static bool against_rival(struct bench_testbed *bench, const struct bench_case *row,
                          const struct tuning *tuning, struct sample *sample)
{
    if (!service_side(bench, row, tuning->workers, bench->seconds, &sample->numerator) ||
        !rival_side(bench, row, tuning->rival_workers, bench->seconds, &sample->denominator))
        return false;
    sample->value = sample->numerator / sample->denominator;
    return true;
}

/* Without the limit as well: that is the collapse which it prevents. */
static bool limited_against_pgbench(struct bench_testbed *bench, const struct bench_case *row,
                                    const struct tuning *tuning, struct sample *sample)
{
    if (!limited_side(bench, row, tuning->product_limit, bench->seconds, &sample->numerator) ||
        !pgbench_side(bench, row, tuning->clients, bench->seconds, &sample->denominator) ||
        !limited_side(bench, row, 0, bench->seconds, &sample->facts[0]))
        return false;
    sample->value = sample->numerator / sample->denominator;
    return true;
}

/* The service, wrk and PostgreSQL share the same processors, so the times that an answer takes of each add up. */
static bool against_additive_ceiling(struct bench_testbed *bench, const struct bench_case *row,
                                     const struct tuning *tuning, struct sample *sample)
{
    const struct service_load echo = {
        .strategy = row->script->strategy,
        .path = "/echo",
        .counted = COUNT_ECHOED,
        .first = row->first,
        .products = row->products,
        .workers = tuning->workers,
        .connections = row->connections,
        .seconds = bench->seconds,
    };
    char product[40];
    snprintf(product, sizeof product, "/products/%" PRId64, row->first);
    double *echo_per_s = &sample->facts[0], *pgbench_per_s = &sample->facts[1],
           *product_per_s = &sample->facts[2];
    if (!service_side(bench, row, tuning->workers, bench->seconds, &sample->numerator) ||
        !pgbench_side(bench, row, tuning->clients, bench->seconds, pgbench_per_s) ||
        !measure_service(bench, &echo, echo_per_s) ||
        (row->facts[2] && !measure_get(bench, product, product_per_s)))
        return false;
    sample->denominator = 1 / (1 / *echo_per_s + 1 / *pgbench_per_s);
    sample->value = sample->numerator / sample->denominator;
    return true;
}

/* The same way of an order, with what Redis costs and without; and how long PostgreSQL needs afterwards. */
static bool against_echo(struct bench_testbed *bench, const struct bench_case *row,
                         const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    const struct service_load orders = {
        .strategy = row->script->strategy,
        .counted = COUNT_CREATED,
        .first = row->first,
        .products = row->products,
        .stock = row->stock,
        .kind = "redis",
        .seconds = bench->seconds,
    };
    const struct service_load echo = {
        .strategy = row->script->strategy,
        .path = "/echo",
        .counted = COUNT_ECHOED,
        .first = row->first,
        .products = row->products,
        .seconds = bench->seconds,
    };
    if (!measure_service(bench, &orders, &sample->numerator) ||
        !measure_service(bench, &echo, &sample->denominator))
        return false;
    sample->value = sample->numerator / sample->denominator;
    sample->facts[0] = bench->written_s;
    sample->facts[1] = sample->numerator * (double)bench->seconds /
                       ((double)bench->seconds + bench->written_s);
    return true;
}

static bool resident_memory(struct bench_testbed *bench, const struct bench_case *row,
                            const struct tuning *tuning, struct sample *sample)
{
    (void)row, (void)tuning;
    return measure_memory(bench, MEMORY_CONNECTIONS, &sample->value);
}

static bool calls_of_an_order(struct bench_testbed *bench, const struct bench_case *row,
                              const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    const struct service_load load = {
        .strategy = row->script->strategy,
        .counted = COUNT_CREATED,
        .first = row->first,
        .products = row->products,
        .stock = row->stock,
        .connections = row->connections,
    };
    struct order_calls calls;
    if (!measure_calls(bench, &load, COUNTED_ORDERS, &calls))
        return false;
    sample->value = calls.system_calls;
    sample->facts[ALLOCATIONS] = calls.allocations;
    sample->facts[ROUND_TRIPS] = calls.round_trips;
    return true;
}

/* ---- locks ---------------------------------------------------------------------------------------------------- */

static bool lock_against(struct bench_testbed *bench, const struct bench_case *row,
                         const struct tuning *tuning, struct sample *sample)
{
    size_t threads = (size_t)tuning->threads;
    if (!measure_lock_cycles(bench, row->lock, row->rivalry, threads, bench->seconds * 1000,
                             &sample->numerator) ||
        !measure_reference(bench, row->lock, row->reference, row->held_against, threads,
                           &sample->denominator))
        return false;
    sample->value = sample->numerator / sample->denominator;
    return true;
}

/* The time of a hand-over in cycles of one who is alone: how much longer than its requests take somebody waits. Both
 * together take as long as one side of another ratio: there are many locks. */
static bool hand_over(struct bench_testbed *bench, const struct bench_case *row, const struct tuning *tuning,
                      struct sample *sample)
{
    struct hand_overs seen;
    if (!measure_lock_cycles(bench, row->lock, A_KEY_EACH, 1, bench->seconds * 1000 / 4,
                             &sample->numerator) ||
        !measure_hand_overs(bench, row->lock, (size_t)tuning->threads, bench->seconds * 1000 * 3 / 4, &seen))
        return false;
    sample->denominator = 1000 / seen.median_ms;
    sample->value = sample->numerator / sample->denominator;
    sample->facts[HAND_OVER_MS] = seen.median_ms;
    sample->facts[ALONE_MS] = 1000 / sample->numerator;
    sample->facts[WAKE_UPS] = seen.wake_ups;
    sample->facts[TOGETHER] = seen.together;
    return true;
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

#define TUNE_BOTH .tune = tune_both, .tune_steps = COUNT(CLIENTS) + COUNT(WORKERS)
#define ORDERS_CALLS                                                                                         \
    .lower_is_better = true, .measure = calls_of_an_order, .measure_steps = 1, .stock = AMPLE_STOCK,         \
    .facts = {[ALLOCATIONS] = "allocations", [ROUND_TRIPS] = "round_trips"}
#define ONE_PRODUCT .first = HOT_PRODUCT, .products = 1

/* clang-format off */
static const struct bench_case CASES[] = {
    {.name = "hot/atomic-statement", .goal = 0.95, .held_against = "pgbench", .measure = against_pgbench, .measure_steps = 2,
     .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, .stock = AMPLE_STOCK, TUNE_BOTH},
    {.name = "hot/select-for-update", .goal = 0.95, .held_against = "pgbench", .measure = against_pgbench, .measure_steps = 2,
     .script = &SCRIPT_SELECT_FOR_UPDATE, ONE_PRODUCT, .stock = AMPLE_STOCK, TUNE_BOTH},
    {.name = "hot/atomic-decrement", .goal = 0.95, .held_against = "pgbench", .measure = against_pgbench, .measure_steps = 2,
     .script = &SCRIPT_ATOMIC_DECREMENT, ONE_PRODUCT, .stock = AMPLE_STOCK, TUNE_BOTH},
    {.name = "spread/atomic-statement", .goal = 0.70, .held_against = "pgbench", .measure = against_pgbench, .measure_steps = 2,
     .script = &SCRIPT_ATOMIC_STATEMENT, .first = SPREAD_FIRST, .products = SPREAD_PRODUCTS, .stock = AMPLE_STOCK, TUNE_BOTH},
    {.name = "crowd/512-vs-16", .goal = 0.95, .held_against = "16 connections", .measure = many_against_few, .measure_steps = 2,
     .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, .stock = AMPLE_STOCK},
    {.name = "pages/30-open", .goal = 0.95, .held_against = "no page open", .measure = with_pages_open, .measure_steps = 2,
     .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, .stock = AMPLE_STOCK},
    {.name = "sold-out", .goal = 0.80, .held_against = "echo + pgbench", .measure = against_additive_ceiling,
     .measure_steps = 4, .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, .stock = 0, TUNE_BOTH,
     .facts = {"echo_per_s", "pgbench_per_s", "get_product_per_s"}},
    {.name = "batched/vs-select-for-update", .goal = 8, .held_against = "select-for-update", .measure = against_rival,
     .measure_steps = 2, .script = &SCRIPT_BATCHED, .rival = &SCRIPT_SELECT_FOR_UPDATE, ONE_PRODUCT, .stock = AMPLE_STOCK,
     .connections = BATCH_CONNECTIONS, .tune = tune_rivals, .tune_steps = 2 * COUNT(WORKERS)},
    {.name = "batched/hot", .goal = 0.80, .held_against = "echo + pgbench", .measure = against_additive_ceiling, .measure_steps = 3,
     .script = &SCRIPT_BATCHED, ONE_PRODUCT, .stock = AMPLE_STOCK, .connections = BATCH_CONNECTIONS, TUNE_BOTH,
     .facts = {"echo_per_s", "pgbench_per_s"}},
    {.name = "contention/select-for-update", .goal = 0.95, .held_against = "pgbench", .measure = limited_against_pgbench,
     .measure_steps = 3, .script = &SCRIPT_SELECT_FOR_UPDATE, ONE_PRODUCT, .stock = AMPLE_STOCK, .connections = MANY_CONNECTIONS,
     .default_workers = true, .tune = tune_limit, .tune_steps = COUNT(CLIENTS) + COUNT(LIMITS), .facts = {"unlimited_per_s"}},
    {.name = "redis-stock/hot", .goal = 0.60, .held_against = "echo", .measure = against_echo, .measure_steps = 2,
     .script = &SCRIPT_REDIS_STOCK, ONE_PRODUCT, .stock = AMPLE_STOCK, .facts = {"written_s", "written_per_s"}},
    {.name = "calls/atomic-statement", .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, ORDERS_CALLS},
    {.name = "calls/select-for-update", .script = &SCRIPT_SELECT_FOR_UPDATE, ONE_PRODUCT, ORDERS_CALLS},
    {.name = "calls/batched", .script = &SCRIPT_BATCHED, ONE_PRODUCT, .connections = BATCH_CONNECTIONS, ORDERS_CALLS},
    {.name = "memory/1000-connections", .goal = 32, .lower_is_better = true, .held_against = "resident MiB", .measure = resident_memory,
     .measure_steps = 1},
    {.name = "locks/redis-lock", .goal = 0.45, .held_against = "redis-benchmark SET", .measure = lock_against, .measure_steps = 2,
     .lock = &redis_lock, .rivalry = A_KEY_EACH, .reference = redis_benchmark_sets},
    {.name = "locks/zookeeper", .goal = 0.80, .held_against = "a bare loop of its calls", .measure = lock_against, .measure_steps = 2,
     .lock = &zookeeper_queue, .rivalry = A_KEY_EACH, .reference = zookeeper_bare_cycles},
    {.name = "locks/zookeeper-contended", .goal = 2, .held_against = "kazoo", .measure = lock_against, .measure_steps = 2,
     .lock = &zookeeper_queue, .rivalry = ONE_KEY, .reference = kazoo_cycles, .threads = CONTENDERS},
    {.name = "locks/etcd", .goal = 0.80, .held_against = "a bare loop of its calls", .measure = lock_against, .measure_steps = 2,
     .lock = &etcd_mutex, .rivalry = A_KEY_EACH, .reference = etcd_bare_cycles},
};

/* One for each lock that is not the process's own. */
static const struct bench_case HAND_OVER = {
    .lower_is_better = true, .measure = hand_over, .measure_steps = 2, .threads = CONTENDERS,
    .facts = {[HAND_OVER_MS] = "hand_over_ms", [ALONE_MS] = "cycle_ms", [WAKE_UPS] = "wake_ups_per_release", [TOGETHER] = "together"},
};
/* clang-format on */

size_t bench_cases(struct bench_case ret_cases[static CASES_MAX])
{
    size_t count = COUNT(CASES);
    memcpy(ret_cases, CASES, sizeof CASES);
    for (const struct lock_driver *const *lock = all_locks; *lock && count < CASES_MAX; lock++) {
        if (!(*lock)->server)
            continue;
        struct bench_case *row = &ret_cases[count++];
        *row = HAND_OVER;
        row->lock = *lock;
        snprintf(row->name, sizeof row->name, "hand-over/%s", (*lock)->name);
    }
    return count;
}

bool bench_case_matches(const struct bench_case *row, const char *list)
{
    const char *word;
    size_t length;
    while (selection_next(&list, &word, &length)) {
        char pattern[PATTERN_SIZE];
        if (length == 0 || length >= sizeof pattern)
            continue;
        memcpy(pattern, word, length);
        pattern[length] = '\0';
        if (fnmatch(pattern, row->name, 0) == 0 || strstr(row->name, pattern) != NULL)
            return true;
    }
    return false;
}

/* ---- the result ----------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The median of one member of all samples, which lies at OFFSET. */
static double median(const struct sample *samples, size_t count, size_t offset)
{
    double sorted[count];
    for (size_t i = 0; i < count; i++)
        memcpy(&sorted[i], (const char *)&samples[i] + offset, sizeof sorted[i]);
    qsort(sorted, count, sizeof sorted[0], by_size);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* "3 workers; pgbench, 2 clients": the counts that were used. */
static void describe(const struct bench_case *row, const struct tuning *tuning, const double *facts,
                     char *ret_text, size_t size)
{
    size_t used = 0;
    if (row->measure == calls_of_an_order) {
        snprintf(ret_text, size, "system calls an order; %.1f allocations; %.2f round trips",
                 facts[ALLOCATIONS], facts[ROUND_TRIPS]);
        return;
    }
    if (!row->held_against) {
        snprintf(ret_text, size, "%.2f ms; alone %.2f ms; %.1f wake-ups", facts[HAND_OVER_MS],
                 facts[ALONE_MS], facts[WAKE_UPS]);
        return;
    }
    if (tuning->threads)
        used = (size_t)snprintf(ret_text, size, "%" PRId64 " thread%s; ", tuning->threads,
                                tuning->threads == 1 ? "" : "s");
    if (tuning->workers)
        used = (size_t)snprintf(ret_text, size, "%" PRId64 " worker%s; ", tuning->workers,
                                tuning->workers == 1 ? "" : "s");
    if (tuning->product_limit)
        used = (size_t)snprintf(ret_text, size, "limit %" PRId64 "; ", tuning->product_limit);
    used += (size_t)snprintf(ret_text + used, size - used, "%s", row->held_against);
    if (tuning->rival_workers)
        snprintf(ret_text + used, size - used, ", %" PRId64 " worker%s", tuning->rival_workers,
                 tuning->rival_workers == 1 ? "" : "s");
    if (tuning->clients)
        snprintf(ret_text + used, size - used, ", %" PRId64 " client%s", tuning->clients,
                 tuning->clients == 1 ? "" : "s");
}

static bool set_per_s(json_t *json, const char *name, double per_s)
{
    return per_s <= 0 || json_object_set_new(json, name, json_real(per_s)) == 0;
}

static bool set_count(json_t *json, const char *name, int64_t count)
{
    return count == 0 || json_object_set_new(json, name, json_integer(count)) == 0;
}

static json_t *goal_json(const struct bench_case *row)
{
    return row->goal > 0 ? json_real(row->goal) : json_null();
}

static const char *better(const struct bench_case *row)
{
    return row->lower_is_better ? "lower" : "higher";
}

static json_t *reached_json(const struct bench_case *row, double value)
{
    if (row->goal <= 0)
        return json_null();
    return json_boolean(row->lower_is_better ? value <= row->goal : value >= row->goal);
}

json_t *bench_case_json(const struct bench_case *row, const struct tuning *tuning,
                        const struct sample *samples, size_t count)
{
    char with[120];
    double facts[FACTS_MAX];
    double value = median(samples, count, offsetof(struct sample, value)), least = samples[0].value,
           most = least;
    for (size_t i = 1; i < count; i++) {
        least = samples[i].value < least ? samples[i].value : least;
        most = samples[i].value > most ? samples[i].value : most;
    }
    for (size_t i = 0; i < FACTS_MAX; i++)
        facts[i] = median(samples, count, offsetof(struct sample, facts) + i * sizeof facts[0]);
    describe(row, tuning, facts, with, sizeof with);
    json_t *json = json_pack("{s:s, s:f, s:f, s:f, s:o, s:s, s:o, s:s}", "name", row->name, "value", value,
                             "min", least, "max", most, "goal", goal_json(row), "better", better(row),
                             "reached", reached_json(row, value), "with", with);
    bool well = json &&
                set_per_s(json, "numerator_per_s",
                          median(samples, count, offsetof(struct sample, numerator))) &&
                set_per_s(json, "denominator_per_s",
                          median(samples, count, offsetof(struct sample, denominator))) &&
                set_count(json, "workers", tuning->workers) && set_count(json, "clients", tuning->clients) &&
                set_count(json, "rival_workers", tuning->rival_workers) &&
                set_count(json, "product_limit", tuning->product_limit) &&
                set_count(json, "threads", tuning->threads);
    for (size_t i = 0; i < FACTS_MAX && row->facts[i] && well; i++)
        well = json_object_set_new(json, row->facts[i], json_real(facts[i])) == 0;
    if (well)
        return json;
    json_decref(json);
    return NULL;
}

json_t *bench_case_unavailable_json(const struct bench_case *row, const char *reason)
{
    return json_pack("{s:s, s:n, s:n, s:n, s:o, s:s, s:n, s:s, s:s}", "name", row->name, "value", "min",
                     "max", "goal", goal_json(row), "better", better(row), "reached", "with",
                     row->held_against ? row->held_against : "", "reason", reason);
}
