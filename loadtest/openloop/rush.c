/* `loadtest rush`: a sale by schedule, and the delay that its buyers see under each strategy. */
#include "loadtest/cli/complain.h"
#include "loadtest/cli/selection.h"
#include "loadtest/command/run_command.h"
#include "loadtest/load/comparison.h"
#include "loadtest/openloop/rush_row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rush_settings {
    const char *strategies;
    const char *shape;
    double load_percent;
    const char *hdr; /* a folder; NULL: none */
    struct rush_plan plan;
    struct testbed_settings testbed;
    struct output_settings output;
};

#define AT(member) offsetof(struct rush_settings, member)

static const struct option_row ROWS[] = {
    SELECTION_ROW(AT(strategies)),
    {"--load", "P%", OPTION_PERCENT, AT(load_percent), 1, 1000, NULL,
     "Buyers per second, as a share of the strategy's throughput. The command measures the throughput "
     "first, in a closed loop with the same connections."},
    {"--rate", "N", OPTION_NUMBER, AT(plan.rate), 0, 1000000, NULL,
     "Buyers per second, the same for each strategy. 0: use --load."},
    {"--shape", "SHAPE", OPTION_CHOICE, AT(shape), 0, 0, SHAPE_NAMES,
     "flat: a constant rate. flash: a tenth of the rate for a fifth of the time, the full rate for three tenths "
     "(the spike); then two fifths of the rate."},
    {"--duration", "T", OPTION_DURATION, AT(plan.duration_ms), 100, 3600000, NULL, "Length of the sale."},
    {"--connections", "C", OPTION_NUMBER, AT(plan.connections), 1, 10000, NULL,
     "Connections in total: at most this many orders are in progress."},
    {"--backlog", "N", OPTION_NUMBER, AT(plan.backlog), 1, ARRIVALS_MAX, NULL,
     "Buyers who can wait for a connection. Further buyers are dropped."},
    {"--timeout", "T", OPTION_DURATION, AT(plan.timeout_ms), 10, 3600000, NULL,
     "A buyer without an answer gives up this long after arrival."},
    {"--products", "N", OPTION_NUMBER, AT(plan.products), 1, 1000, NULL,
     "Number of products on sale. More than one needs --rate."},
    {"--zipf", "S", OPTION_REAL, AT(plan.zipf), 0, 10, NULL,
     "Popularity of the products: the k-th is ordered in proportion to 1 / k^S. 0: all equally."},
    {"--product", "ID", OPTION_NUMBER, AT(plan.product), 1, INT64_MAX - 1000, NULL,
     "ID of the first product. All orders of these products are DELETED first."},
    {"--stock", "S", OPTION_NUMBER, AT(plan.stock), 0, 100000000, NULL,
     "Units of each product. 0: a flat sale has enough for all buyers; a flash sale sells out half-way "
     "through the spike."},
    {"--quantity", "Q", OPTION_NUMBER, AT(plan.quantity), 1, 1000000, NULL, "Units per order."},
    {"--think-ms", "M", OPTION_NUMBER, AT(plan.think_ms), 0, 10000, NULL,
     "Pause of each order between its read and its write, in milliseconds."},
    {"--closed-loop", "T", OPTION_DURATION, AT(plan.loop_ms), 100, 3600000, NULL,
     "Length of the closed-loop measurement for --load."},
    {"--seed", "N", OPTION_NUMBER, AT(plan.seed), 0, INT64_MAX, NULL,
     "Seed of the arrivals. The same seed, rate, shape and products give the same arrivals."},
    {"--hdr", "FOLDER", OPTION_TEXT, AT(hdr), 0, 0, NULL,
     "Write all percentiles of the latency in ms to FOLDER/STRATEGY.OUTCOME.hgrm, for HdrHistogram's "
     "plotter."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

/* ---- settings ------------------------------------------------------------------------------------------ */

static int rush_begin(void *context, const struct texts *operands)
{
    struct rush_settings *settings = context;
    struct rush_plan *plan = &settings->plan;
    (void)operands;
    plan->share = settings->load_percent / 100;
    plan->shape = shape_find(settings->shape);
    struct schedule_plan when = {
        .shape = plan->shape, .rate = (double)plan->rate, .duration_ms = plan->duration_ms};
    if (plan->products > 1 && plan->rate == 0) {
        complain("more than one of --products needs --rate, because --load is measured with one product");
        return ENDED_USAGE;
    }
    if (plan->rate > 0 && schedule_count(&when) > ARRIVALS_MAX) {
        complain("--rate and --duration give more than %d arrivals: use a lower rate or a shorter sale",
                 ARRIVALS_MAX);
        return ENDED_USAGE;
    }
    if (plan->stock > 0 && plan->quantity > plan->stock) {
        complain("--quantity must not be more than --stock, or nothing can be sold");
        return ENDED_USAGE;
    }
    settings->testbed.strategies = settings->strategies;
    bool valid = testbed_settings_valid(&settings->testbed) && output_valid(&settings->output) &&
                 (!settings->hdr || rush_folder_valid(settings->hdr));
    return valid ? COMMAND_GOES_ON : ENDED_USAGE;
}

static json_t *settings_json(const struct rush_settings *settings, const struct testbed *testbed)
{
    const struct rush_plan *plan = &settings->plan;
    return json_pack(
        "{s:s, s:f, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}",
        "strategies", settings->strategies, "load_percent", plan->rate > 0 ? 0 : plan->share * 100, "rate",
        (json_int_t)plan->rate, "shape", plan->shape->name, "duration_ms", (json_int_t)plan->duration_ms,
        "connections", (json_int_t)plan->connections, "backlog", (json_int_t)plan->backlog, "timeout_ms",
        (json_int_t)plan->timeout_ms, "products", (json_int_t)plan->products, "zipf", plan->zipf, "stock",
        (json_int_t)plan->stock, "quantity", (json_int_t)plan->quantity, "think_ms",
        (json_int_t)plan->think_ms, "closed_loop_ms", (json_int_t)(plan->rate > 0 ? 0 : plan->loop_ms),
        "seed", (json_int_t)plan->seed, "late_ms", (json_int_t)LATE_MS, "instances",
        (json_int_t)testbed->count, "workers", (json_int_t)settings->testbed.workers, "servers",
        settings->testbed.urls.count > 0 ? "given" : settings->testbed.servers);
}

/* ---- running ------------------------------------------------------------------------------------------- */

static json_t *run_strategy(const void *context, struct testbed *testbed, const json_t *strategy,
                            struct progress *progress)
{
    const struct rush_settings *settings = context;
    struct subject subject;
    struct rush rush;
    if (!subject_read(strategy, &subject) || !rush_run(testbed, &settings->plan, &subject, progress, &rush))
        return NULL;
    json_t *row = rush_row_new(testbed, &settings->plan, &subject, &rush);
    if (!row)
        complain("out of memory");
    if (row && settings->hdr && !rush_write_latencies(settings->hdr, subject.name, &rush)) {
        json_decref(row);
        row = NULL;
    }
    rush_free(&rush);
    progress_step_done(progress);
    return row;
}

static int rush_all(struct testbed *testbed, const json_t *strategies, void *context)
{
    const struct rush_settings *settings = context;
    json_auto_t *rows = measure_strategies(testbed, 0, strategies, 1, run_strategy, settings);
    if (!rows)
        return ENDED_ENVIRONMENT;
    return command_result(&rush_result, settings_json(settings, testbed), rows, settings->strategies,
                          &settings->output);
}

static const struct command COMMAND = {
    .line =
        {
            .name = "rush",
            .operands = "",
            .summary =
                "Measures the latency that buyers see when orders arrive at a fixed rate, in an open "
                "loop.\n"
                "\n"
                "Buyers arrive at random moments that are fixed in advance, whether or not the service "
                "keeps up. The latency counts from the arrival, so it includes the wait for a connection. "
                "A closed loop hides that delay, because its clients wait for an answer before they send "
                "the next order. After the sale, the command audits the database. Without --url, it "
                "starts a private database and a service, and stops them on exit.",
            .example = "loadtest rush --strategies optimistic --shape flash --rate 500",
            .groups = {{&OPTIONS, 0}, {&testbed_options, AT(testbed)}, {&output_options, AT(output)}},
        },
    .begin = rush_begin,
    .run = rush_all,
    .testbed = AT(testbed),
};

int rush_main(int argc, char **argv)
{
    struct rush_settings settings = {
        .strategies = "select-for-update,atomic-decrement,atomic-statement,optimistic,batched",
        .shape = "flat",
        .load_percent = 70,
        .plan = {.loop_ms = 2000,
                 .duration_ms = 5000,
                 .timeout_ms = 10000,
                 .connections = 100,
                 .backlog = 10000,
                 .product = 1,
                 .products = 1,
                 .zipf = 1,
                 .quantity = 1,
                 .seed = 1},
        .testbed = TESTBED_DEFAULTS,
        .output = OUTPUT_DEFAULTS,
    };
    return run_command(&COMMAND, argc, argv, &settings);
}
