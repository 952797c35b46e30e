/* `loadtest rush`: a sale by schedule, and the delay that its buyers see under each strategy. */
#include "loadtest/cli/complain.h"
#include "loadtest/cli/selection.h"
#include "loadtest/command/run_command.h"
#include "loadtest/compare/comparison.h"
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
     "buyers per second, as a share of the orders per second that each strategy\n"
     "makes in a closed loop with as many connections, measured first"},
    {"--rate", "N", OPTION_NUMBER, AT(plan.rate), 0, 1000000, NULL,
     "buyers per second, the same for every strategy, instead of --load"},
    {"--shape", "SHAPE", OPTION_CHOICE, AT(shape), 0, 0, SHAPE_NAMES,
     "flat: always as many; flash: a tenth of them for a fifth of the time, all of\n"
     "them for three tenths, then two fifths of them to the end, and a stock that\n"
     "is sold out half-way through the spike"},
    {"--duration", "T", OPTION_DURATION, AT(plan.duration_ms), 100, 3600000, NULL, "how long buyers come"},
    {"--connections", "C", OPTION_NUMBER, AT(plan.connections), 1, 10000, NULL,
     "connections in all: at most this many orders are in progress"},
    {"--backlog", "N", OPTION_NUMBER, AT(plan.backlog), 1, ARRIVALS_MAX, NULL,
     "buyers who may wait for a connection; one more is dropped"},
    {"--timeout", "T", OPTION_DURATION, AT(plan.timeout_ms), 10, 3600000, NULL,
     "a buyer gives up so long after coming"},
    {"--products", "N", OPTION_NUMBER, AT(plan.products), 1, 1000, NULL,
     "products that are sold; more than one needs --rate"},
    {"--zipf", "S", OPTION_REAL, AT(plan.zipf), 0, 10, NULL,
     "the k-th product is wanted in proportion to 1 / k^S; 0: all alike"},
    {"--product", "ID", OPTION_NUMBER, AT(plan.product), 1, INT64_MAX - 1000, NULL,
     "the first product; their orders are DELETED first"},
    {"--stock", "S", OPTION_NUMBER, AT(plan.stock), 0, 100000000, NULL,
     "units of each product; 0: ample in a flat sale, and in a flash sale what\n"
     "is wanted until half-way through the spike"},
    {"--quantity", "Q", OPTION_NUMBER, AT(plan.quantity), 1, 1000000, NULL, "units an order"},
    {"--think-ms", "M", OPTION_NUMBER, AT(plan.think_ms), 0, 10000, NULL,
     "pause of every order inside its critical section, between read and write"},
    {"--closed-loop", "T", OPTION_DURATION, AT(plan.loop_ms), 100, 3600000, NULL,
     "how long the closed loop measures, with --load"},
    {"--seed", "N", OPTION_NUMBER, AT(plan.seed), 0, INT64_MAX, NULL,
     "the same seed, rate, shape and products give the same schedule"},
    {"--hdr", "FOLDER", OPTION_TEXT, AT(hdr), 0, 0, NULL,
     "write FOLDER/STRATEGY.OUTCOME.hgrm, every percentile of the latency in ms,\n"
     "as HdrHistogram's plotter reads it"},
};

static const struct option_rows OPTIONS = OPTION_ROWS(ROWS);

/* ---- settings ------------------------------------------------------------------------------------------ */

static int begin(void *context, const struct texts *operands)
{
    struct rush_settings *settings = context;
    struct rush_plan *plan = &settings->plan;
    (void)operands;
    plan->share = settings->load_percent / 100;
    plan->shape = shape_find(settings->shape);
    struct schedule_plan when = {
        .shape = plan->shape, .rate = (double)plan->rate, .duration_ms = plan->duration_ms};
    if (plan->products > 1 && plan->rate == 0) {
        complain("--products needs --rate: what --load is a share of is measured with one product");
        return ENDED_USAGE;
    }
    if (plan->rate > 0 && schedule_count(&when) > ARRIVALS_MAX) {
        complain("--rate and --duration make more than %d arrivals", ARRIVALS_MAX);
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

static int run(struct testbed *testbed, const json_t *strategies, void *context)
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
                "Sells by schedule: buyers come when they come, at random moments fixed beforehand, whether or not\n"
                "the shop keeps up, and latency counts from the moment a buyer comes. So a strategy that falls\n"
                "behind shows its true delay, which a closed loop hides, whose clients wait before the next order.\n"
                "Dropped, timed-out and late buyers are counted apart. Then the books are compared with what the\n"
                "buyers were told. Without --url it starts a private database and the services, and removes them.",
            .groups = {{&OPTIONS, 0}, {&testbed_options, AT(testbed)}, {&output_options, AT(output)}},
        },
    .begin = begin,
    .run = run,
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
