/* `loadtest rush`: a sale by schedule, and the delay that its buyers see under each strategy. */
#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/selection.h"
#include "loadtest/compare/comparison.h"
#include "loadtest/openloop/rush_row.h"
#include "loadtest/report/output.h"
#include "loadtest/report/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rush_settings {
    const char *strategies;
    const char *shape;
    const char *load; /* "70%" */
    const char *zipf; /* a decimal number */
    const char *hdr;  /* a folder; NULL: none */
    struct rush_plan plan;
    struct lab_settings lab;
    struct output_settings output;
};

#define AT(member) offsetof(struct rush_settings, member)

static const struct option_row ROWS[] = {
    SELECTION_ROW(AT(strategies)),
    {"--load", "P%", OPTION_TEXT, AT(load), 0, 0, NULL,
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
     "connections in all: so many orders are under way at most"},
    {"--backlog", "N", OPTION_NUMBER, AT(plan.backlog), 1, ARRIVALS_MAX, NULL,
     "buyers who may wait for a connection; one more is dropped"},
    {"--timeout", "T", OPTION_DURATION, AT(plan.timeout_ms), 10, 3600000, NULL,
     "a buyer gives up so long after coming"},
    {"--products", "N", OPTION_NUMBER, AT(plan.products), 1, 1000, NULL,
     "products that are sold; more than one needs --rate"},
    {"--zipf", "S", OPTION_TEXT, AT(zipf), 0, 0, NULL,
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

static const struct command_line LINE = {
    .name = "rush",
    .operands = "",
    .summary =
        "Sells by schedule: buyers come when they come, at random moments fixed beforehand, whether or not\n"
        "the shop keeps up, and latency counts from the moment a buyer comes. So a strategy that falls\n"
        "behind shows its true delay, which a closed loop hides, whose clients wait before they come again.\n"
        "Dropped, timed-out and late buyers are counted apart. Then the books are compared with what the\n"
        "buyers were told. Without --url it starts a private database and the services, and removes them.",
    .groups = {{&OPTIONS, 0}, {&lab_options, AT(lab)}, {&output_options, AT(output)}},
};

/* ---- settings ------------------------------------------------------------------------------------------ */

/* A decimal number from LOW to HIGH, with SUFFIX behind it. */
static bool parse_decimal(const char *option, const char *text, const char *suffix, double low, double high,
                          double *ret_number)
{
    char *end;
    double number = strtod(text, &end);
    bool plain = strspn(text, "0123456789.") == (size_t)(end - text) && end > text;
    if (plain && strcmp(end, suffix) == 0 && number >= low && number <= high) {
        *ret_number = number;
        return true;
    }
    fprintf(stderr, "loadtest rush: %s '%s' is not valid (a number from %g%s to %g%s)\n", option, text, low,
            suffix, high, suffix);
    return false;
}

static bool complete(struct rush_settings *settings)
{
    struct rush_plan *plan = &settings->plan;
    double percent;
    if (!parse_decimal("--load", settings->load, "%", 1, 1000, &percent) ||
        !parse_decimal("--zipf", settings->zipf, "", 0, 10, &plan->zipf))
        return false;
    plan->share = percent / 100;
    plan->shape = shape_find(settings->shape);
    struct schedule_plan when = {
        .shape = plan->shape, .rate = (double)plan->rate, .duration_ms = plan->duration_ms};
    if (plan->products > 1 && plan->rate == 0) {
        complain("--products needs --rate: what --load is a share of is measured with one product");
        return false;
    }
    if (plan->rate > 0 && schedule_count(&when) > ARRIVALS_MAX) {
        complain("--rate and --duration make more than %d arrivals", ARRIVALS_MAX);
        return false;
    }
    if (plan->stock > 0 && plan->quantity > plan->stock) {
        complain("--quantity must not be more than --stock, or nothing can be sold");
        return false;
    }
    settings->lab.strategies = settings->strategies;
    return lab_settings_valid(&settings->lab) && output_valid(&settings->output) &&
           (!settings->hdr || rush_folder_valid(settings->hdr));
}

static json_t *settings_json(const struct rush_settings *settings, const struct lab *lab)
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
        "seed", (json_int_t)plan->seed, "late_ms", (json_int_t)LATE_MS, "instances", (json_int_t)lab->count,
        "workers", (json_int_t)settings->lab.workers, "servers",
        settings->lab.urls.count > 0 ? "given" : settings->lab.servers);
}

/* ---- running ------------------------------------------------------------------------------------------- */

static json_t *run_strategy(const struct rush_settings *settings, struct lab *lab, const json_t *strategy,
                            struct progress *progress)
{
    struct subject subject;
    struct rush rush;
    if (!subject_read(strategy, &subject) || !rush_run(lab, &settings->plan, &subject, progress, &rush))
        return NULL;
    json_t *row = rush_row_new(lab, &settings->plan, &subject, &rush);
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

static json_t *run_all(const struct rush_settings *settings, struct lab *lab, const json_t *strategies)
{
    json_t *before[INSTANCES_MAX];
    strategies_remember(lab, 0, before);
    struct progress progress = progress_begin(json_array_size(strategies));
    json_t *rows = json_array(), *strategy;
    size_t i;
    json_array_foreach(strategies, i, strategy) {
        json_t *row = run_strategy(settings, lab, strategy, &progress);
        if (!row || json_array_append_new(rows, row) != 0) {
            json_decref(rows);
            rows = NULL;
            break;
        }
    }
    progress_wipe();
    strategies_restore(lab, 0, before);
    return rows;
}

static int rush_in(struct lab *lab, const struct rush_settings *settings)
{
    json_auto_t *table = service_client_strategies(lab->clients[0]);
    if (!table) {
        if (!interrupted())
            complain("%s", service_client_error(lab->clients[0]));
        return ENDED_ENVIRONMENT;
    }
    json_auto_t *strategies = selection_rows(table, settings->strategies);
    if (!strategies)
        return ENDED_USAGE;
    json_auto_t *rows = run_all(settings, lab, strategies);
    if (!rows)
        return ENDED_ENVIRONMENT;
    json_auto_t *document = result_new("rush", settings_json(settings, lab));
    if (!document || json_object_set(document, "rows", rows) != 0) {
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    return output_write(&rush_result, document, &settings->output) ? result_status(rows, settings->strategies)
                                                                   : ENDED_ENVIRONMENT;
}

int rush_main(int argc, char **argv)
{
    struct rush_settings settings = {
        .strategies = "select-for-update,atomic-decrement,atomic-statement,optimistic,batched",
        .shape = "flat",
        .load = "70%",
        .zipf = "1",
        .plan = {.loop_ms = 2000,
                 .duration_ms = 5000,
                 .timeout_ms = 10000,
                 .connections = 100,
                 .backlog = 10000,
                 .product = 1,
                 .products = 1,
                 .quantity = 1,
                 .seed = 1},
        .lab = LAB_DEFAULTS,
        .output = OUTPUT_DEFAULTS,
    };
    struct texts operands;
    switch (options_parse(&LINE, argc, argv, &settings, &operands)) {
    case OPTIONS_OK: break;
    case OPTIONS_HELP: return ENDED_AS_EXPECTED;
    case OPTIONS_BAD: return ENDED_USAGE;
    }
    if (!complete(&settings))
        return ENDED_USAGE;

    interrupt_watch();
    struct lab lab;
    int status = ENDED_ENVIRONMENT;
    if (lab_open(&settings.lab, &lab)) {
        status = rush_in(&lab, &settings);
        lab_close(&lab);
    }
    return interrupted() ? 128 + interrupted() : status;
}
