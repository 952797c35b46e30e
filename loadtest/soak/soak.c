/* `loadtest soak`: sells for hours under each strategy, and looks whether the service grows and stock and orders balance. */
#include "loadtest/soak/soak.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/selection.h"
#include "loadtest/command/run_command.h"
#include "loadtest/load/comparison.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct soak_settings {
    const char *strategies;
    const char *resume; /* NULL: none */
    int64_t orders;     /* over all strategies */
    struct soak_plan plan;
    struct testbed_settings testbed;
    struct output_settings output;
    json_t *document; /* the rows that are done, and then all */
};

#define AT(member) offsetof(struct soak_settings, member)

static const struct option_row ROWS[] = {
    SELECTION_ROW(AT(strategies)),
    {"--orders", "N", OPTION_NUMBER, AT(orders), 1, 1000000000, NULL,
     "Orders in total, divided equally among the strategies."},
    {"--slice", "N", OPTION_NUMBER, AT(plan.slice), 1, 1000000, NULL,
     "Units in each stock, at most. When a stock is sold out, the command resets the product."},
    {"--connections", "C", OPTION_NUMBER, AT(plan.connections), 1, 10000, NULL,
     "Connections in total. Each has one order in progress at a time."},
    {"--resume", "FILE", OPTION_TEXT, AT(resume), 0, 0, NULL,
     "Record each finished strategy in FILE. If FILE exists, continue from it."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

/* ---- what is done already ------------------------------------------------------------------------------ */

static json_t *settings_json(const struct soak_settings *settings)
{
    return json_pack("{s:s, s:I, s:I, s:I}", "strategies", settings->strategies, "orders",
                     (json_int_t)settings->orders, "slice", (json_int_t)settings->plan.slice, "connections",
                     (json_int_t)settings->plan.connections);
}

/* The document to go on with: that of the file, or a new one. */
static int soak_begin(void *context, const struct texts *operands)
{
    struct soak_settings *settings = context;
    (void)operands;
    if (!output_valid(&settings->output) || (settings->resume && !output_file_valid(settings->resume)))
        return ENDED_USAGE;
    settings->testbed.strategies = settings->strategies;
    json_auto_t *now = settings_json(settings);
    if (!now || !settings->resume || access(settings->resume, F_OK) != 0) {
        settings->document = now ? result_new("soak", json_incref(now)) : NULL;
        if (settings->document && json_object_set_new(settings->document, "rows", json_array()) == 0)
            return COMMAND_GOES_ON;
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    settings->document = result_load(settings->resume);
    if (settings->document && strcmp(result_kind_name(settings->document), "soak") == 0 &&
        json_equal(json_object_get(settings->document, "settings"), now))
        return COMMAND_GOES_ON;
    if (settings->document)
        complain("%s was written with other settings: remove it, or name another file", settings->resume);
    return ENDED_USAGE;
}

static bool keep(const struct soak_settings *settings, const json_t *document)
{
    if (!settings->resume)
        return true;
    char *text = json_dumps(document, JSON_INDENT(1));
    bool kept = text && output_file(settings->resume, text, strlen(text));
    free(text);
    return kept;
}

/* ---- selling ------------------------------------------------------------------------------------------- */

static bool sell_under(struct testbed *testbed, const struct soak_settings *settings, const json_t *strategy,
                       struct progress *progress, json_t *document)
{
    struct subject subject;
    struct soak_counts counts;
    if (!subject_read(strategy, &subject))
        return false;
    if (result_find(json_object_get(document, "rows"), subject.name))
        return true;
    if (subject.available && !soak_strategy(testbed, &settings->plan, &subject, progress, &counts))
        return false;
    json_t *row = soak_row_new(&subject, subject.available ? &counts : NULL);
    if (json_array_append_new(json_object_get(document, "rows"), row) != 0) {
        complain("out of memory");
        return false;
    }
    return keep(settings, document);
}

static int soak_run(struct testbed *testbed, const json_t *strategies, void *context)
{
    struct soak_settings *settings = context;
    json_t *document = settings->document;
    int64_t count = (int64_t)json_array_size(strategies);
    settings->plan.orders = (settings->orders + count - 1) / count;
    struct progress progress = progress_begin((size_t)count);
    bool ok = true;
    size_t i;
    json_t *strategy;
    json_array_foreach(strategies, i, strategy) {
        ok = ok && sell_under(testbed, settings, strategy, &progress, document);
        progress_step_done(&progress);
    }
    progress_wipe();
    /* What came before the end of a run that broke off may have taken hours; with --resume it is kept already, and a result
     * of before is not replaced by a part of the next. */
    const json_t *rows = json_object_get(document, "rows");
    if (interrupted() && !settings->resume)
        json_object_set_new(document, "interrupted", json_true());
    bool is_worth_it = ok || (!settings->resume && json_array_size(rows) > 0);
    bool written = !is_worth_it || output_write(&soak_result, document, &settings->output);
    return ok && written ? result_status(rows, settings->strategies) : ENDED_ENVIRONMENT;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "soak",
            .operands = "",
            .summary =
                "Checks that the service leaks no memory and loses no order in millions of orders.\n"
                "\n"
                "One service sells one stock after another under each strategy. After each stock, the "
                "command compares the orders in the database with those that the service acknowledged. It "
                "reads the service's memory and open files after the first stock and after the last. It "
                "starts a private database, lock servers and a service, and stops them on exit.",
            .example = "loadtest soak --strategies atomic-decrement --orders 100000",
            .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
        },
    .begin = soak_begin,
    .run = soak_run,
    .testbed = AT(testbed),
};

int soak_main(int argc, char **argv)
{
    struct soak_settings settings = {
        .strategies = "safe",
        .orders = 10000000,
        .plan = {.slice = 25000, .connections = 32},
        .testbed = {.instances = 1, .instances_default = 1, .servers = "private"},
        .output = OUTPUT_DEFAULTS,
    };
    int status = run_command(&COMMAND, argc, argv, &settings);
    json_decref(settings.document);
    return status;
}
