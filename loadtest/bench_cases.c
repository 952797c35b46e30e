/* The ratios that the benchmark measures, one row each: what is held against what, and what it should reach. */
#include "loadtest/bench_cases.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW_CONNECTIONS 16
#define MANY_CONNECTIONS 512
#define MEMORY_CONNECTIONS 1000

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Tried in short measurements; the counts that do best are used. */
static const int64_t CLIENTS[] = {1, 2, 4, 8, 16, 32};
static const int64_t WORKERS[] = {1, 2, 3, 4, 8};

#define TRY_SECONDS 1

/* ---- the two sides -------------------------------------------------------------------------------------------- */

static bool service_side(struct stage *stage, const struct bench_case *row, int64_t workers, int64_t seconds,
                         double *ret_per_s)
{
    const struct service_load load = {
        .strategy = row->script->strategy,
        .counted = row->stock > 0 ? COUNT_CREATED : COUNT_SOLD_OUT,
        .first = row->first,
        .products = row->products,
        .stock = row->stock,
        .workers = workers,
        .seconds = seconds,
    };
    return stage_service(stage, &load, ret_per_s);
}

static bool pgbench_side(struct stage *stage, const struct bench_case *row, int64_t clients, int64_t seconds,
                         double *ret_per_s)
{
    return stage_pgbench(stage, row->script, row->first, row->products, row->stock, clients, seconds,
                         ret_per_s);
}

typedef bool side_fn(struct stage *stage, const struct bench_case *row, int64_t count, int64_t seconds,
                     double *ret_per_s);

static bool best_count(struct stage *stage, const struct bench_case *row, side_fn *side,
                       const int64_t *counts, size_t count, int64_t *ret_best)
{
    double best = 0, per_s;
    for (size_t i = 0; i < count; i++) {
        if (!side(stage, row, counts[i], TRY_SECONDS, &per_s))
            return false;
        if (i == 0 || per_s > best) {
            best = per_s;
            *ret_best = counts[i];
        }
    }
    return true;
}

static bool tune_both(struct stage *stage, const struct bench_case *row, struct tuning *ret_tuning)
{
    return best_count(stage, row, pgbench_side, CLIENTS, COUNT(CLIENTS), &ret_tuning->clients) &&
           best_count(stage, row, service_side, WORKERS, COUNT(WORKERS), &ret_tuning->workers);
}

/* ---- the cases ------------------------------------------------------------------------------------------------ */

static bool against_pgbench(struct stage *stage, const struct bench_case *row, const struct tuning *tuning,
                            struct sample *sample)
{
    if (!service_side(stage, row, tuning->workers, stage->seconds, &sample->numerator) ||
        !pgbench_side(stage, row, tuning->clients, stage->seconds, &sample->denominator))
        return false;
    sample->value = sample->numerator / sample->denominator;
    return true;
}

static bool many_against_few(struct stage *stage, const struct bench_case *row, const struct tuning *tuning,
                             struct sample *sample)
{
    (void)tuning;
    struct service_load load = {
        .strategy = row->script->strategy,
        .counted = COUNT_CREATED,
        .first = row->first,
        .products = row->products,
        .stock = row->stock,
        .seconds = stage->seconds,
        .connections = MANY_CONNECTIONS,
    };
    if (!stage_service(stage, &load, &sample->numerator))
        return false;
    load.connections = FEW_CONNECTIONS;
    if (!stage_service(stage, &load, &sample->denominator))
        return false;
    sample->value = sample->numerator / sample->denominator;
    return true;
}

/* The service, wrk and PostgreSQL share the same processors, so the times that an answer takes of each add up. */
static bool against_additive_ceiling(struct stage *stage, const struct bench_case *row,
                                     const struct tuning *tuning, struct sample *sample)
{
    const struct service_load echo = {
        .strategy = row->script->strategy,
        .path = "/echo",
        .counted = COUNT_ECHOED,
        .first = row->first,
        .products = row->products,
        .workers = tuning->workers,
        .seconds = stage->seconds,
    };
    char product[40];
    snprintf(product, sizeof product, "/products/%" PRId64, row->first);
    double *echo_per_s = &sample->facts[0], *pgbench_per_s = &sample->facts[1],
           *product_per_s = &sample->facts[2];
    if (!service_side(stage, row, tuning->workers, stage->seconds, &sample->numerator) ||
        !pgbench_side(stage, row, tuning->clients, stage->seconds, pgbench_per_s) ||
        !stage_service(stage, &echo, echo_per_s) || !stage_get(stage, product, product_per_s))
        return false;
    sample->denominator = 1 / (1 / *echo_per_s + 1 / *pgbench_per_s);
    sample->value = sample->numerator / sample->denominator;
    return true;
}

static bool resident_memory(struct stage *stage, const struct bench_case *row, const struct tuning *tuning,
                            struct sample *sample)
{
    (void)row, (void)tuning;
    return stage_memory(stage, MEMORY_CONNECTIONS, &sample->value);
}

#define TUNE_BOTH .tune = tune_both, .tune_steps = COUNT(CLIENTS) + COUNT(WORKERS)
#define ONE_PRODUCT .first = HOT_PRODUCT, .products = 1

/* clang-format off */
const struct bench_case bench_cases[] = {
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
    {.name = "sold-out", .goal = 0.80, .held_against = "echo + pgbench", .measure = against_additive_ceiling,
     .measure_steps = 4, .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, .stock = 0, TUNE_BOTH,
     .facts = {"echo_per_s", "pgbench_per_s", "get_product_per_s"}},
    {.name = "memory/1000-connections", .goal = 32, .lower_is_better = true, .held_against = "resident MiB", .measure = resident_memory,
     .measure_steps = 1},
};
/* clang-format on */

const size_t bench_case_count = COUNT(bench_cases);

bool bench_case_matches(const struct bench_case *row, const char *pattern)
{
    return fnmatch(pattern, row->name, 0) == 0 || strstr(row->name, pattern) != NULL;
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
static void describe(const struct bench_case *row, const struct tuning *tuning, char *ret_text, size_t size)
{
    size_t used = 0;
    if (tuning->workers)
        used = (size_t)snprintf(ret_text, size, "%" PRId64 " worker%s; ", tuning->workers,
                                tuning->workers == 1 ? "" : "s");
    used += (size_t)snprintf(ret_text + used, size - used, "%s", row->held_against);
    if (tuning->clients)
        snprintf(ret_text + used, size - used, ", %" PRId64 " client%s", tuning->clients,
                 tuning->clients == 1 ? "" : "s");
}

static bool set_per_s(json_t *json, const char *name, double per_s)
{
    return per_s <= 0 || json_object_set_new(json, name, json_real(per_s)) == 0;
}

json_t *bench_case_json(const struct bench_case *row, const struct tuning *tuning,
                        const struct sample *samples, size_t count)
{
    char with[120];
    double value = median(samples, count, offsetof(struct sample, value)), least = samples[0].value,
           most = least;
    for (size_t i = 1; i < count; i++) {
        least = samples[i].value < least ? samples[i].value : least;
        most = samples[i].value > most ? samples[i].value : most;
    }
    describe(row, tuning, with, sizeof with);
    bool reached = row->lower_is_better ? value <= row->goal : value >= row->goal;
    json_t *json = json_pack("{s:s, s:f, s:f, s:f, s:f, s:s, s:b, s:s}", "name", row->name, "value", value,
                             "min", least, "max", most, "goal", row->goal, "better",
                             row->lower_is_better ? "lower" : "higher", "reached", reached, "with", with);
    bool well = json &&
                set_per_s(json, "numerator_per_s",
                          median(samples, count, offsetof(struct sample, numerator))) &&
                set_per_s(json, "denominator_per_s",
                          median(samples, count, offsetof(struct sample, denominator)));
    for (size_t i = 0; i < FACTS_MAX && row->facts[i] && well; i++)
        well = set_per_s(
            json, row->facts[i],
            median(samples, count, offsetof(struct sample, facts) + i * sizeof samples[0].facts[0]));
    if (well && tuning->workers)
        well = json_object_set_new(json, "workers", json_integer(tuning->workers)) == 0;
    if (well && tuning->clients)
        well = json_object_set_new(json, "clients", json_integer(tuning->clients)) == 0;
    if (well)
        return json;
    json_decref(json);
    return NULL;
}
