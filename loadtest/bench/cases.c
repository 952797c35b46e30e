/* The table of the ratios that the benchmark measures: the two sides of each, and its goal. */
#include "loadtest/bench/cases.h"

#include "base/secret.h"
#include "loadtest/cli/plain_text.h"
#include "loadtest/cli/selection.h"
#include "loadtest/client/class_pages.h"
#include "loadtest/stats/median.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW_CONNECTIONS 16
#define LATENCY_CONNECTIONS 64
#define BATCH_CONNECTIONS 256 /* so that there is something to combine */
#define MANY_CONNECTIONS 512
#define OPEN_PAGES 30
#define TOKEN_LENGTH 20 /* characters of an ADMIN_TOKEN */
#define MEMORY_CONNECTIONS 1000
#define CONTENDERS 8 /* for one key */
#define COUNTED_ORDERS 10000
#define TRY_SECONDS 1    /* of a measurement that looks for the best count */
#define PATTERN_SIZE 128 /* longer than any name; a longer pattern matches nothing */

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The facts of the cases. */
enum { ECHO_PER_S, PGBENCH_PER_S, GET_PRODUCT_PER_S };
enum { SCRIPT_PER_S = PGBENCH_PER_S, WRITTEN_S, WRITTEN_PER_S };
enum { MEDIAN_MS, P99_MS };
enum { ALLOCATIONS, ROUND_TRIPS };
enum { HAND_OVER_MS, ALONE_MS, WAKE_UPS, TOGETHER };

/* ---- the two sides -------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;          /* in JSON */
    const char *before, *noun; /* with the count: ", 3 clients" */
    int64_t tried[7];          /* in short measurements; ended by 0 */
} TUNED[TUNED_COUNT] = {
    [TUNED_WORKERS] = {"tuned_workers", "; tuned: ", " worker", {1, 2, 4, 8, 16}},
    [TUNED_CLIENTS] = {"clients", ", ", " client", {1, 2, 4, 8, 16, 32}},
    [TUNED_THREADS] = {"threads", ", ", " thread", {0}},
};

/* The case's own orders. */
static struct service_load orders_of(const struct bench_testbed *bench, const struct bench_case *row)
{
    return (struct service_load){
        .strategy = row->script->strategy,
        .counted = row->stock > 0 ? COUNT_CREATED : COUNT_SOLD_OUT,
        .first = row->first,
        .products = row->products,
        .stock = row->stock,
        .connections = row->connections,
        .seconds = bench->seconds,
    };
}

/* Requests of the same size that only come back. */
static struct service_load echoes_of(const struct bench_testbed *bench, const struct bench_case *row)
{
    struct service_load echoes = orders_of(bench, row);
    echoes.path = "/echo";
    echoes.counted = COUNT_ECHOED;
    echoes.stock = 0;
    return echoes;
}

/* Measures the side that depends on TUNED, with COUNT of them; 0 workers: the service's default. */
static bool measure_side(struct bench_testbed *bench, const struct bench_case *row, enum tuned tuned,
                         int64_t count, int64_t seconds, double *ret_per_s)
{
    struct service_load load = orders_of(bench, row);
    if (tuned == TUNED_CLIENTS)
        return measure_pgbench(bench, row->script, row->first, row->products, row->stock, count, seconds,
                               ret_per_s);
    load.workers = count;
    load.seconds = seconds;
    return measure_service(bench, &load, ret_per_s);
}

size_t bench_tune_steps(enum tuned tuned)
{
    size_t steps = 0;
    while (TUNED[tuned].tried[steps])
        steps++;
    return steps;
}

bool bench_tune(struct bench_testbed *bench, const struct bench_case *row, enum tuned tuned,
                int64_t *ret_best)
{
    double best = 0, per_s;
    for (const int64_t *count = TUNED[tuned].tried; *count; count++) {
        if (!measure_side(bench, row, tuned, *count, TRY_SECONDS, &per_s))
            return false;
        if (count == TUNED[tuned].tried || per_s > best) {
            best = per_s;
            *ret_best = *count;
        }
    }
    return true;
}

/* ---- the cases ------------------------------------------------------------------------------------------------ */

static bool against_pgbench(struct bench_testbed *bench, const struct bench_case *row,
                            const struct tuning *tuning, struct sample *sample)
{
    int64_t workers = tuning->counts[TUNED_WORKERS], clients = tuning->counts[TUNED_CLIENTS];
    return measure_side(bench, row, TUNED_WORKERS, 0, bench->seconds, &sample->numerator) &&
           (workers == 0 ||
            measure_side(bench, row, TUNED_WORKERS, workers, bench->seconds, &sample->tuned)) &&
           measure_side(bench, row, TUNED_CLIENTS, clients, bench->seconds, &sample->denominator);
}

static bool against_rival(struct bench_testbed *bench, const struct bench_case *row,
                          const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    struct service_load ours = orders_of(bench, row), rivals = ours;
    rivals.strategy = row->rival->strategy;
    return measure_service(bench, &ours, &sample->numerator) &&
           measure_service(bench, &rivals, &sample->denominator);
}

static bool many_against_few(struct bench_testbed *bench, const struct bench_case *row,
                             const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    struct service_load many = orders_of(bench, row), few = many;
    many.connections = MANY_CONNECTIONS;
    few.connections = FEW_CONNECTIONS;
    return measure_service(bench, &many, &sample->numerator) &&
           measure_service(bench, &few, &sample->denominator);
}

static bool with_pages_open(struct bench_testbed *bench, const struct bench_case *row,
                            const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    struct service_load open = orders_of(bench, row), closed = open;
    open.pages = OPEN_PAGES;
    return measure_service(bench, &open, &sample->numerator) &&
           measure_service(bench, &closed, &sample->denominator);
}

/* Both sides have a class, because a class has other limits. Its service, its orders and its board need an ADMIN_TOKEN, which other
 * cases are measured without. */
static bool with_class_open(struct bench_testbed *bench, const struct bench_case *row,
                            const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    struct service_load open = orders_of(bench, row), closed;
    char token[TOKEN_LENGTH + 1];
    bool needs_token = !getenv("ADMIN_TOKEN");
    make_secret(token, TOKEN_LENGTH);
    if (needs_token && setenv("ADMIN_TOKEN", token, 1) != 0)
        return false;
    open.classroom = true;
    closed = open;
    open.learners = CLASS_LEARNERS;
    bool well = measure_service(bench, &open, &sample->numerator) &&
                measure_service(bench, &closed, &sample->denominator);
    if (needs_token)
        unsetenv("ADMIN_TOKEN");
    return well;
}

/* The service, wrk and PostgreSQL or Redis share the same processors, so the times that an answer takes of each add up. */
static double additive_ceiling(double a_per_s, double b_per_s)
{
    return 1 / (1 / a_per_s + 1 / b_per_s);
}

/* The rates of both parts of an additive ceiling are facts. */
static bool against_pgbench_beside_echo(struct bench_testbed *bench, const struct bench_case *row,
                                        const struct tuning *tuning, struct sample *sample)
{
    struct service_load echoes = echoes_of(bench, row);
    char product[40];
    snprintf(product, sizeof product, "/products/%" PRId64, row->first);
    double *facts = sample->facts;
    if (!against_pgbench(bench, row, tuning, sample) ||
        !measure_service(bench, &echoes, &facts[ECHO_PER_S]) ||
        (row->facts[GET_PRODUCT_PER_S] && !measure_get(bench, product, &facts[GET_PRODUCT_PER_S])))
        return false;
    facts[PGBENCH_PER_S] = sample->denominator;
    return true;
}

static bool against_echo_and_pgbench(struct bench_testbed *bench, const struct bench_case *row,
                                     const struct tuning *tuning, struct sample *sample)
{
    if (!against_pgbench_beside_echo(bench, row, tuning, sample))
        return false;
    sample->denominator = additive_ceiling(sample->facts[ECHO_PER_S], sample->facts[PGBENCH_PER_S]);
    return true;
}

/* How long PostgreSQL needs afterwards is a fact as well. The script comes first: it finds out whether there is a Redis. */
static bool against_echo_and_script(struct bench_testbed *bench, const struct bench_case *row,
                                    const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    struct service_load orders = orders_of(bench, row), echoes = echoes_of(bench, row);
    double *facts = sample->facts;
    orders.kind = "redis";
    if (!measure_reference(bench, &redis_server, row->reference, row->name, "the script in a bare loop",
                           (size_t)bench->connections, &facts[SCRIPT_PER_S]) ||
        !measure_service(bench, &orders, &sample->numerator) ||
        !measure_service(bench, &echoes, &facts[ECHO_PER_S]))
        return false;
    facts[WRITTEN_S] = bench->written_s;
    facts[WRITTEN_PER_S] = sample->numerator * (double)bench->seconds /
                           ((double)bench->seconds + bench->written_s);
    sample->denominator = additive_ceiling(facts[ECHO_PER_S], facts[SCRIPT_PER_S]);
    return true;
}

static bool latencies_of_orders(struct bench_testbed *bench, const struct bench_case *row,
                                const struct tuning *tuning, struct sample *sample)
{
    (void)tuning;
    const struct service_load load = orders_of(bench, row);
    struct latencies seen;
    if (!measure_latencies(bench, &load, &seen))
        return false;
    sample->value = seen.p99_ms / seen.median_ms;
    sample->facts[MEDIAN_MS] = seen.median_ms;
    sample->facts[P99_MS] = seen.p99_ms;
    return true;
}

static void describe_latencies(const double *facts, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "p99 %.1f ms; median %.1f ms", facts[P99_MS], facts[MEDIAN_MS]);
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
    const struct service_load load = orders_of(bench, row);
    struct order_calls calls;
    if (!measure_calls(bench, &load, COUNTED_ORDERS, &calls))
        return false;
    sample->value = calls.system_calls;
    sample->facts[ALLOCATIONS] = calls.allocations;
    sample->facts[ROUND_TRIPS] = calls.round_trips;
    return true;
}

static void describe_calls(const double *facts, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "system calls an order; %.1f allocations; %.2f round trips", facts[ALLOCATIONS],
             facts[ROUND_TRIPS]);
}

/* ---- locks ---------------------------------------------------------------------------------------------------- */

static bool lock_against(struct bench_testbed *bench, const struct bench_case *row,
                         const struct tuning *tuning, struct sample *sample)
{
    size_t threads = (size_t)tuning->counts[TUNED_THREADS];
    return measure_lock_cycles(bench, row->lock, row->rivalry, threads, bench->seconds * 1000,
                               &sample->numerator) &&
           measure_reference(bench, row->lock->server, row->reference, row->name, row->held_against, threads,
                             &sample->denominator);
}

/* The time of a hand-over in cycles of one who is alone: how much longer than its requests take somebody waits. Both
 * together take as long as one side of another ratio: there are many locks. */
static bool hand_over(struct bench_testbed *bench, const struct bench_case *row, const struct tuning *tuning,
                      struct sample *sample)
{
    struct hand_overs seen;
    if (!measure_lock_cycles(bench, row->lock, A_KEY_EACH, 1, bench->seconds * 1000 / 4,
                             &sample->numerator) ||
        !measure_hand_overs(bench, row->lock, (size_t)tuning->counts[TUNED_THREADS],
                            bench->seconds * 1000 * 3 / 4, &seen))
        return false;
    sample->denominator = 1000 / seen.median_ms;
    sample->facts[HAND_OVER_MS] = seen.median_ms;
    sample->facts[ALONE_MS] = 1000 / sample->numerator;
    sample->facts[WAKE_UPS] = seen.wake_ups;
    sample->facts[TOGETHER] = seen.together;
    return true;
}

static void describe_hand_over(const double *facts, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%.2f ms; alone %.2f ms; %.1f wake-ups", facts[HAND_OVER_MS], facts[ALONE_MS],
             facts[WAKE_UPS]);
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

#define TUNED_SIDES .sides = {TUNED_WORKERS, TUNED_CLIENTS}, .profiled = true
#define AGAINST_PGBENCH                                                                                      \
    .held_against = "pgbench", .measure = against_pgbench, .measure_steps = 2, .stock = AMPLE_STOCK,         \
    TUNED_SIDES
#define MANY_AGAINST_FEW                                                                                     \
    .goal = 0.95, .held_against = "16 connections", .measure = many_against_few, .measure_steps = 2,         \
    .stock = AMPLE_STOCK
#define LATENCIES                                                                                            \
    .goal = 3, .lower_is_better = true, .measure = latencies_of_orders, .measure_steps = 1,                  \
    .stock = AMPLE_STOCK, .connections = LATENCY_CONNECTIONS, .describe = describe_latencies,                \
    .facts = {[MEDIAN_MS] = "median_ms", [P99_MS] = "p99_ms"}
#define ORDERS_CALLS                                                                                         \
    .lower_is_better = true, .measure = calls_of_an_order, .measure_steps = 1, .stock = AMPLE_STOCK,         \
    .describe = describe_calls, .facts = {[ALLOCATIONS] = "allocations", [ROUND_TRIPS] = "round_trips"}
#define ONE_PRODUCT .first = HOT_PRODUCT, .products = 1

/* clang-format off */
static const struct bench_case CASES[] = {
    {.name = "hot/atomic-statement", .goal = 1, .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, AGAINST_PGBENCH},
    {.name = "hot/select-for-update", .goal = 1, .script = &SCRIPT_SELECT_FOR_UPDATE, ONE_PRODUCT, AGAINST_PGBENCH},
    {.name = "hot/atomic-decrement", .goal = 1, .script = &SCRIPT_ATOMIC_DECREMENT, ONE_PRODUCT, AGAINST_PGBENCH},
    {.name = "spread/atomic-statement", .goal = 0.80, .script = &SCRIPT_ATOMIC_STATEMENT, .first = SPREAD_FIRST,
     .products = SPREAD_PRODUCTS, .held_against = "pgbench", .measure = against_pgbench_beside_echo, .measure_steps = 3,
     .stock = AMPLE_STOCK, TUNED_SIDES, .facts = {[ECHO_PER_S] = "echo_per_s", [PGBENCH_PER_S] = "pgbench_per_s"}},
    {.name = "crowd/512-vs-16", .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, MANY_AGAINST_FEW},
    {.name = "crowd/select-for-update", .script = &SCRIPT_SELECT_FOR_UPDATE, ONE_PRODUCT, MANY_AGAINST_FEW},
    {.name = "crowd/atomic-decrement", .script = &SCRIPT_ATOMIC_DECREMENT, ONE_PRODUCT, MANY_AGAINST_FEW},
    {.name = "latency/atomic-statement", .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, LATENCIES},
    {.name = "latency/select-for-update", .script = &SCRIPT_SELECT_FOR_UPDATE, ONE_PRODUCT, LATENCIES},
    {.name = "latency/atomic-decrement", .script = &SCRIPT_ATOMIC_DECREMENT, ONE_PRODUCT, LATENCIES},
    {.name = "pages/30-open", .goal = 0.95, .held_against = "no page open", .measure = with_pages_open, .measure_steps = 2,
     .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, .stock = AMPLE_STOCK},
    {.name = "pages/class-of-40", .goal = 0.95, .held_against = "no page open", .measure = with_class_open, .measure_steps = 2,
     .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, .stock = AMPLE_STOCK},
    {.name = "sold-out", .goal = 0.95, .held_against = "echo + pgbench", .measure = against_echo_and_pgbench,
     .measure_steps = 4, .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, .stock = 0, TUNED_SIDES,
     .facts = {[ECHO_PER_S] = "echo_per_s", [PGBENCH_PER_S] = "pgbench_per_s", [GET_PRODUCT_PER_S] = "get_product_per_s"}},
    {.name = "batched/vs-select-for-update", .goal = 8, .held_against = "select-for-update", .measure = against_rival,
     .measure_steps = 2, .script = &SCRIPT_BATCHED, .rival = &SCRIPT_SELECT_FOR_UPDATE, ONE_PRODUCT, .stock = AMPLE_STOCK,
     .connections = BATCH_CONNECTIONS},
    {.name = "batched/hot", .goal = 0.80, .held_against = "echo + pgbench", .measure = against_echo_and_pgbench, .measure_steps = 3,
     .script = &SCRIPT_BATCHED, ONE_PRODUCT, .stock = AMPLE_STOCK, .connections = BATCH_CONNECTIONS, TUNED_SIDES,
     .facts = {[ECHO_PER_S] = "echo_per_s", [PGBENCH_PER_S] = "pgbench_per_s"}},
    {.name = "redis-stock/hot", .goal = 0.80, .held_against = "echo + script in Redis", .measure = against_echo_and_script,
     .measure_steps = 3, .profiled = true, .script = &SCRIPT_REDIS_STOCK, ONE_PRODUCT, .stock = AMPLE_STOCK, .reference = redis_stock_takes,
     .facts = {[ECHO_PER_S] = "echo_per_s", [SCRIPT_PER_S] = "script_per_s", [WRITTEN_S] = "written_s", [WRITTEN_PER_S] = "written_per_s"}},
    {.name = "calls/atomic-statement", .script = &SCRIPT_ATOMIC_STATEMENT, ONE_PRODUCT, ORDERS_CALLS},
    {.name = "calls/select-for-update", .script = &SCRIPT_SELECT_FOR_UPDATE, ONE_PRODUCT, ORDERS_CALLS},
    {.name = "calls/batched", .script = &SCRIPT_BATCHED, ONE_PRODUCT, .connections = BATCH_CONNECTIONS, ORDERS_CALLS},
    {.name = "memory/1000-connections", .goal = 32, .lower_is_better = true, .held_against = "resident MiB", .measure = resident_memory,
     .measure_steps = 1},
    {.name = "locks/redis-lock", .goal = 0.45, .held_against = "redis-benchmark SET", .measure = lock_against, .measure_steps = 2,
     .lock = &redis_lock, .sides = {TUNED_THREADS}, .rivalry = A_KEY_EACH, .reference = redis_benchmark_sets},
    {.name = "locks/zookeeper", .goal = 0.80, .held_against = "a bare loop of its calls", .measure = lock_against, .measure_steps = 2,
     .lock = &zookeeper_queue, .sides = {TUNED_THREADS}, .rivalry = A_KEY_EACH, .reference = zookeeper_bare_cycles},
    {.name = "locks/zookeeper-contended", .goal = 2, .held_against = "kazoo", .measure = lock_against, .measure_steps = 2,
     .lock = &zookeeper_queue, .sides = {TUNED_THREADS}, .rivalry = ONE_KEY, .reference = kazoo_cycles, .threads = CONTENDERS},
    {.name = "locks/etcd", .goal = 0.80, .held_against = "a bare loop of its calls", .measure = lock_against, .measure_steps = 2,
     .lock = &etcd_mutex, .sides = {TUNED_THREADS}, .rivalry = A_KEY_EACH, .reference = etcd_bare_cycles},
};

/* One for each lock that is not the process's own. */
static const struct bench_case HAND_OVER = {
    .lower_is_better = true, .measure = hand_over, .describe = describe_hand_over, .measure_steps = 2, .sides = {TUNED_THREADS}, .threads = CONTENDERS,
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

/* LENGTH: of the pattern. */
static bool matches(const struct bench_case *row, const char *word, size_t length)
{
    char pattern[PATTERN_SIZE];
    if (length == 0 || length >= sizeof pattern)
        return false;
    memcpy(pattern, word, length);
    pattern[length] = '\0';
    return fnmatch(pattern, row->name, 0) == 0 || strstr(row->name, pattern);
}

/* Marks the cases that match the pattern; false, having said on stderr which there are, if none does. */
static bool choose(const struct bench_case *cases, size_t count, const char *word, size_t length,
                   bool *ret_wanted)
{
    bool found = false;
    for (size_t i = 0; i < count; i++)
        if (matches(&cases[i], word, length))
            found = ret_wanted[i] = true;
    if (found)
        return true;
    plain_print(stderr, "loadtest bench: --only '%.*s' matches nothing (valid:", (int)length, word);
    for (size_t i = 0; i < count; i++)
        plain_print(stderr, " %s", cases[i].name);
    fputs(")\n", stderr);
    return false;
}

bool bench_cases_choose(const struct bench_case *cases, size_t count, const struct texts *only,
                        bool ret_wanted[static CASES_MAX])
{
    const char *word;
    size_t length;
    for (size_t i = 0; i < count; i++)
        ret_wanted[i] = only->count == 0;
    for (size_t i = 0; i < only->count; i++)
        for (const char *rest = only->item[i]; selection_next(&rest, &word, &length);)
            if (!choose(cases, count, word, length, ret_wanted))
                return false;
    return true;
}

/* ---- the result ----------------------------------------------------------------------------------------------- */

/* The median of one member of all samples, which lies at OFFSET. */
static double median(const struct sample *samples, size_t count, size_t offset)
{
    double values[count];
    for (size_t i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&samples[i] + offset, sizeof values[i]);
    return median_of(values, count);
}

/* "pgbench, 2 clients; tuned: 3 workers": the counts that were used. */
static void describe(const struct bench_case *row, const struct tuning *tuning, char *ret_text, size_t size)
{
    int length = snprintf(ret_text, size, "%s", row->held_against);
    for (enum tuned tuned = TUNED_COUNT; tuned-- > TUNED_NOTHING + 1;) {
        int64_t count = tuning->counts[tuned];
        if (count && length >= 0 && (size_t)length < size)
            length += snprintf(ret_text + length, size - (size_t)length, "%s%" PRId64 "%s%s",
                               TUNED[tuned].before, count, TUNED[tuned].noun, count == 1 ? "" : "s");
    }
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

/* Sets a figure, unless the case has none. */
static bool set_figure(json_t *json, const char *name, double figure)
{
    return figure <= 0 || json_object_set_new(json, name, json_real(figure)) == 0;
}

json_t *bench_case_json(const struct bench_case *row, const struct tuning *tuning,
                        const struct sample *samples, size_t count)
{
    char with[120] = "";
    double facts[FACTS_MAX];
    double value = median(samples, count, offsetof(struct sample, value)), least = samples[0].value,
           most = least;
    for (size_t i = 1; i < count; i++) {
        least = samples[i].value < least ? samples[i].value : least;
        most = samples[i].value > most ? samples[i].value : most;
    }
    for (size_t i = 0; i < FACTS_MAX; i++)
        facts[i] = median(samples, count, offsetof(struct sample, facts) + i * sizeof facts[0]);
    if (row->describe)
        row->describe(facts, with, sizeof with);
    else
        describe(row, tuning, with, sizeof with);
    json_t *json = json_pack("{s:s, s:f, s:f, s:f, s:o, s:s, s:o, s:s}", "name", row->name, "value", value,
                             "min", least, "max", most, "goal", goal_json(row), "better", better(row),
                             "reached", reached_json(row, value), "with", with);
    bool well =
        json &&
        set_figure(json, "numerator_per_s", median(samples, count, offsetof(struct sample, numerator))) &&
        set_figure(json, "denominator_per_s", median(samples, count, offsetof(struct sample, denominator))) &&
        set_figure(json, "tuned_value", median(samples, count, offsetof(struct sample, tuned_value))) &&
        set_figure(json, "tuned_per_s", median(samples, count, offsetof(struct sample, tuned)));
    for (enum tuned tuned = TUNED_NOTHING; tuned < TUNED_COUNT && well; tuned++)
        well = tuning->counts[tuned] == 0 ||
               json_object_set_new(json, TUNED[tuned].name, json_integer(tuning->counts[tuned])) == 0;
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
