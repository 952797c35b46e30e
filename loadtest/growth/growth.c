/* loadtest growth: orders per second and p99 as connections, products, and orders in the tables grow. */
#include "loadtest/growth/growth.h"

#include "loadtest/bench/bench_testbed.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/command/run_command.h"
#include "loadtest/report/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECTIONS 32  /* where something else grows; as many as bench has */
#define CLIENTS_MAX 100 /* of pgbench; the private PostgreSQL accepts 200 */
#define PRODUCTS_MAX 10000

/* The values of an axis: from FIRST on, each FACTOR times the one before, up to a limit. */
struct axis {
    int64_t first, factor;
};

static const struct axis AXES[GROWTH_AXES] = {
    [GROWTH_CONNECTIONS] = {1, 4},
    [GROWTH_PRODUCTS] = {1, 10},
    [GROWTH_ORDERS] = {10000, 10},
};

static const struct script *const SCRIPTS[] = {&SCRIPT_ATOMIC_STATEMENT, &SCRIPT_SELECT_FOR_UPDATE};

#define SCRIPT_COUNT (sizeof SCRIPTS / sizeof SCRIPTS[0])

/* The settings, and what the command works with. */
struct growth {
    int64_t duration_ms;
    int64_t limits[GROWTH_AXES];
    struct output_settings output;
    struct progress progress;
    struct bench_testbed testbed;
    json_t *rows;
    double load_average; /* of the machine, before anything was started */
};

#define AT(member) offsetof(struct growth, member)

static const struct option_row ROWS[] = {
    {"--connections", "N", OPTION_NUMBER, AT(limits[GROWTH_CONNECTIONS]), 1, 4096, NULL,
     "Most connections: the values are 1, 4, 16 and so on."},
    {"--products", "N", OPTION_NUMBER, AT(limits[GROWTH_PRODUCTS]), 1, PRODUCTS_MAX, NULL,
     "Most products: the values are 1, 10, 100 and so on."},
    {"--orders", "N", OPTION_NUMBER, AT(limits[GROWTH_ORDERS]), 10000, 100000000, NULL,
     "Most orders in the tables: the values are 10000, 100000 and so on. Ten million orders need about 3 GB for the tables."},
    {"--duration", "TIME", OPTION_DURATION, AT(duration_ms), 1000, 600000, NULL,
     "Length of each measurement, in whole seconds."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

static int begin(void *context, const struct texts *operands)
{
    struct growth *growth = context;
    (void)operands;
    if (growth->duration_ms % 1000 != 0) {
        fputs("loadtest growth: --duration must be whole seconds, because pgbench measures in seconds\n",
              stderr);
        return ENDED_USAGE;
    }
    return output_valid(&growth->output) ? COMMAND_GOES_ON : ENDED_USAGE;
}

/* ---- one point ------------------------------------------------------------------------------------------------ */

/* What is used at one point of an axis. */
struct point {
    int64_t connections, products;
};

static struct point point_of(enum growth_axis axis, int64_t at)
{
    switch (axis) {
    case GROWTH_CONNECTIONS: return (struct point){at, 1};
    case GROWTH_PRODUCTS: return (struct point){CONNECTIONS, at};
    default: return (struct point){CONNECTIONS, SPREAD_PRODUCTS};
    }
}

/* Decimals as in the other results; null for what is not known. */
static json_t *rounded(double value)
{
    return isfinite(value) ? json_real(round(value * 1000) / 1000) : json_null();
}

/* Measures the service and, with as many clients, pgbench. NULL on a failure. */
static json_t *measure_point(struct growth *growth, const struct script *script, const struct point *point)
{
    struct bench_testbed *testbed = &growth->testbed;
    const struct service_load load = {
        .strategy = script->strategy,
        .counted = COUNT_CREATED,
        .first = SPREAD_FIRST,
        .products = point->products,
        .stock = AMPLE_STOCK,
        .connections = point->connections,
        .may_refuse = true, /* a slow machine cannot answer a thousand waiting orders in time */
        .seconds = testbed->seconds,
    };
    double per_s, pgbench_per_s = NAN;
    if (!measure_service(testbed, &load, &per_s))
        return NULL;
    double median_s = histogram_percentile(&testbed->created, 0.5);
    double p99_s = histogram_percentile(&testbed->created, 0.99);
    if (point->connections <= CLIENTS_MAX &&
        !measure_pgbench(testbed, script, load.first, load.products, load.stock, point->connections,
                         load.seconds, &pgbench_per_s))
        return NULL;
    return json_pack("{s:o, s:o, s:o, s:I, s:o}", "orders_per_s", rounded(per_s), "median_ms",
                     rounded(median_s * 1e3), "p99_ms", rounded(p99_s * 1e3), "refused",
                     (json_int_t)testbed->refused, "pgbench_per_s", rounded(pgbench_per_s));
}

static bool measure_row(struct growth *growth, enum growth_axis axis, int64_t at)
{
    struct bench_testbed *testbed = &growth->testbed;
    const struct point point = point_of(axis, at);
    testbed->earlier.wanted = axis == GROWTH_ORDERS ? at : 0;
    json_auto_t *row = json_pack("{s:s, s:I}", "axis", growth_axis_names[axis], "at", (json_int_t)at);
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        json_t *figures = measure_point(growth, SCRIPTS[i], &point);
        if (!figures || json_object_set_new(row, SCRIPTS[i]->strategy, figures) != 0)
            return false;
    }
    if (axis == GROWTH_ORDERS &&
        json_object_set_new(row, "insert_s", rounded(testbed->earlier.insert_s)) != 0)
        return false;
    return json_array_append(growth->rows, row) == 0;
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static size_t steps_of(const struct growth *growth)
{
    size_t steps = 0;
    for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++)
        for (int64_t at = AXES[axis].first; at <= growth->limits[axis]; at *= AXES[axis].factor)
            steps += SCRIPT_COUNT * (point_of(axis, at).connections <= CLIENTS_MAX ? 2 : 1);
    return steps;
}

static bool measure_all(struct growth *growth)
{
    for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++)
        for (int64_t at = AXES[axis].first; at <= growth->limits[axis]; at *= AXES[axis].factor)
            if (!measure_row(growth, axis, at))
                return false;
    return true;
}

static json_t *document_of(const struct growth *growth)
{
    json_t *document = result_new(
        "growth",
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "duration_ms", (json_int_t)growth->duration_ms,
                  "max_connections", (json_int_t)growth->limits[GROWTH_CONNECTIONS], "max_products",
                  (json_int_t)growth->limits[GROWTH_PRODUCTS], "max_orders",
                  (json_int_t)growth->limits[GROWTH_ORDERS], "connections", (json_int_t)CONNECTIONS,
                  "products", (json_int_t)SPREAD_PRODUCTS, "load_average", growth->load_average));
    if (json_object_set(document, "rows", growth->rows) == 0)
        return document;
    json_decref(document);
    return NULL;
}

static int run(void *context)
{
    struct growth *growth = context;
    struct bench_testbed *testbed = &growth->testbed;
    json_auto_t *rows = growth->rows = json_array();
    if (getloadavg(&growth->load_average, 1) != 1)
        growth->load_average = 0;
    growth->progress = progress_begin(steps_of(growth));
    testbed->progress = &growth->progress;
    testbed->seconds = growth->duration_ms / 1000;
    testbed->connections = CONNECTIONS;
    testbed->has_shop = true;
    testbed->products = PRODUCTS_MAX;
    progress_label(&growth->progress, "starting the servers");
    if (!bench_testbed_open(testbed))
        return ENDED_ENVIRONMENT;
    bool measured = rows && measure_all(growth);
    progress_wipe();
    if (!measured && !interrupted())
        testbed_explain_full_disk(&testbed->base);
    bench_testbed_close(testbed);
    if (!measured && (!interrupted() || json_array_size(rows) == 0))
        return testbed->broken ? ENDED_BROKEN : ENDED_ENVIRONMENT;

    json_auto_t *document = document_of(growth);
    if (!document)
        complain("out of memory");
    return document && output_write(&growth_result, document, &growth->output) ? ENDED_AS_EXPECTED
                                                                               : ENDED_ENVIRONMENT;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "growth",
            .operands = "",
            .summary =
                "Measures orders per second and latency as connections, products, and orders in the tables grow.\n"
                "\n"
                "The service has its default settings and private servers. One value grows at a time. pgbench runs "
                "the same SQL with as many clients, up to 100.",
            .example = "loadtest growth --export-svg growth.svg",
            .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
        },
    .begin = begin,
    .run_alone = run,
};

int growth_main(int argc, char **argv)
{
    static struct growth growth = {
        .duration_ms = 2000,
        .limits = {[GROWTH_CONNECTIONS] = 1024, [GROWTH_PRODUCTS] = PRODUCTS_MAX, [GROWTH_ORDERS] = 1000000},
        .output = OUTPUT_DEFAULTS,
    };
    return run_command(&COMMAND, argc, argv, &growth);
}
