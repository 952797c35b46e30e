/* Measures several strategies one after the other, for compare and diff. */
#include "loadtest/load/comparison.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/progress.h"
#include "loadtest/load/row.h"
#include "loadtest/load/show_flaw.h"
#include "loadtest/report/events.h"

#include <stdio.h>

#define AT(member) offsetof(struct comparison, member)

static const char *const SWITCH_CHOICES[] = {"service", "product", NULL};

static const struct option_row ROWS[] = {
    {"--connections", "C", OPTION_NUMBER, AT(plan.connections), 1, 10000, NULL,
     "Connections in total. Each has one order in progress at a time."},
    {"--stock", "S", OPTION_NUMBER, AT(plan.stock), 1, 100000000, NULL,
     "Units in stock when a sell-out begins."},
    {"--quantity", "Q", OPTION_NUMBER, AT(plan.quantity), 0, 1000000, NULL,
     "Units per order. 0: one unit, after a short sell-out of 51 units with two units per order."},
    {"--requests", "R", OPTION_NUMBER, AT(plan.requests), 0, 100000000, NULL,
     "Orders to send in a sell-out. 0: four times as many as the stock can serve. A sell-out ends "
     "early after 512 consecutive \"sold out\" answers."},
    {"--duration", "T", OPTION_DURATION, AT(plan.duration_ms), 100, 3600000, NULL,
     "Length of the throughput phase."},
    {"--think-ms", "M", OPTION_NUMBER, AT(plan.think_ms), 0, 10000, NULL,
     "Pause of each order between its read and its write, in milliseconds."},
    {"--repeat", "K", OPTION_NUMBER, AT(repeat), 1, 1000, NULL,
     "Measure each strategy K times. The result has the worst verdict, and the median of each rate and "
     "time."},
    {"--product", "ID", OPTION_NUMBER, AT(plan.product), 1, INT64_MAX, NULL,
     "ID of the product to order. All orders of this product are DELETED before each phase."},
    {"--switch", "WHAT", OPTION_CHOICE, AT(plan.switched), 0, 0, SWITCH_CHOICES,
     "Set each strategy for the whole service, or for this product only. Then orders of other products "
     "keep their strategy."},
    {"--patience", "T", OPTION_DURATION, AT(plan.patience_ms), 1000, 3600000, NULL,
     "Give up if the service answers no order for this long."},
};

const struct option_rows comparison_options = OPTION_ROWS("Load", ROWS);

struct comparison comparison_defaults(int64_t instances)
{
    return (struct comparison){
        .testbed = {.instances = instances, .instances_default = instances, .servers = "private"},
        .plan = {.sell_out = true,
                 .throughput = true,
                 .connections = 16,
                 .stock = 100,
                 .duration_ms = 1000,
                 .product = 1,
                 .switched = "service",
                 .patience_ms = 60000},
        .repeat = 1,
    };
}

bool comparison_settle(struct comparison *comparison)
{
    struct plan *plan = &comparison->plan;
    plan->pairs = plan->quantity == 0;
    plan->quantity += plan->pairs;
    if (comparison->plan.quantity > comparison->plan.stock) {
        complain("--quantity must not be more than --stock, or nothing can be sold");
        return false;
    }
    return testbed_settings_valid(&comparison->testbed);
}

static json_t *names_of(const json_t *strategies)
{
    json_t *names = json_array(), *strategy;
    size_t i;
    json_array_foreach(strategies, i, strategy) {
        if (json_array_append(names, json_object_get(strategy, "name")) != 0) {
            json_decref(names);
            return NULL;
        }
    }
    return names;
}

json_t *comparison_settings(const struct comparison *comparison, const struct testbed *testbed,
                            const json_t *strategies)
{
    const struct plan *plan = &comparison->plan;
    struct load load = {.testbed = (struct testbed *)testbed, .connections = plan->connections};
    json_t *phases = json_array();
    if (plan->sell_out && !plan->sell_out_last)
        json_array_append_new(phases, json_string("sell-out"));
    if (plan->throughput)
        json_array_append_new(phases, json_string("throughput"));
    if (plan->sell_out && plan->sell_out_last)
        json_array_append_new(phases, json_string("sell-out"));
    return json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:s}", "strategies", names_of(strategies),
        "instances", (json_int_t)testbed->count, "workers", (json_int_t)comparison->testbed.workers,
        "connections", (json_int_t)load_connections(&load), "stock", (json_int_t)plan->stock, "quantity",
        (json_int_t)plan->quantity, "requests", (json_int_t)(plan->sell_out ? plan_requests(plan) : 0),
        "duration_ms", (json_int_t)(plan->throughput ? plan->duration_ms : 0), "think_ms",
        (json_int_t)plan->think_ms, "repeat", (json_int_t)comparison->repeat, "phases", phases, "servers",
        comparison->testbed.urls.count > 0 ? "given" : comparison->testbed.servers);
}

/* Measures one strategy as often as it should be, and returns its row. */
static json_t *run_strategy(const void *context, struct testbed *testbed, const json_t *strategy,
                            struct progress *progress)
{
    const struct comparison *comparison = context;
    struct subject subject;
    json_auto_t *runs = json_array();
    if (!runs || !subject_read(strategy, &subject))
        return NULL;
    subject_fit(&subject, &comparison->plan);
    for (int64_t run = 0; run < comparison->repeat; run++) {
        struct measurement measurement;
        if (!measure(testbed, &comparison->plan, &subject, progress, &measurement)) {
            if (interrupted() && run > 0)
                break;
            return NULL;
        }
        if (json_array_append_new(runs, row_new(testbed, &comparison->plan, &subject, &measurement)) != 0) {
            complain("out of memory");
            return NULL;
        }
        progress_step_done(progress);
    }
    json_t *row = row_of_runs(runs);
    if (!row || (comparison->shows_flaws && !interrupted() && !show_flaw(testbed, row))) {
        complain("out of memory");
        json_decref(row);
        return NULL;
    }
    if (comparison->on_row)
        comparison->on_row(row);
    return row;
}

/* The strategies of services that were there before, of one product or in common (PRODUCT 0); NULL where the testbed has
 * started them, or where it is not known. */
static void remember_strategies(struct testbed *testbed, int64_t product, json_t *ret_before[INSTANCES_MAX])
{
    for (size_t i = 0; i < INSTANCES_MAX; i++)
        ret_before[i] = i < testbed->given ? service_client_strategy(testbed->clients[i], product) : NULL;
}

/* Gives them back, also after an interrupt, and releases them. */
static void restore_strategies(struct testbed *testbed, int64_t product, json_t *before[INSTANCES_MAX])
{
    for (size_t i = 0; i < testbed->count; i++) {
        if (!before[i])
            continue;
        service_client_begin_cleanup(testbed->clients[i]);
        if (!service_client_set_strategy(testbed->clients[i], product, before[i]))
            complain("cannot restore the strategy that the service had before: %s",
                     service_client_error(testbed->clients[i]));
        json_decref(before[i]);
    }
}

json_t *measure_strategies(struct testbed *testbed, int64_t product, const json_t *strategies, int64_t steps,
                           measure_strategy_fn *measure_one, const void *context)
{
    json_t *before[INSTANCES_MAX];
    remember_strategies(testbed, product, before);
    struct progress progress = progress_begin(json_array_size(strategies) * (size_t)steps);
    json_t *rows = json_array(), *strategy;
    size_t i;
    json_array_foreach(strategies, i, strategy) {
        json_t *row = measure_one(context, testbed, strategy, &progress);
        if (!row && interrupted() && json_array_size(rows) > 0)
            break; /* what the other strategies have shown remains */
        if (json_array_append_new(rows, row) != 0) {
            json_decref(rows);
            rows = NULL;
            break;
        }
        events_row(row);
    }
    progress_wipe();
    restore_strategies(testbed, product, before);
    return rows;
}

json_t *comparison_run(const struct comparison *comparison, struct testbed *testbed, const json_t *strategies)
{
    return measure_strategies(testbed, plan_switched(&comparison->plan), strategies, comparison->repeat,
                              run_strategy, comparison);
}
