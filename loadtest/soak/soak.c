/* `loadtest soak`: sells for hours under each strategy, and looks whether the service grows and the books balance. */
#include "loadtest/soak/soak.h"

#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/selection.h"
#include "loadtest/compare/comparison.h"
#include "loadtest/report/output.h"
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
    struct output_settings output;
};

#define AT(member) offsetof(struct soak_settings, member)

static const struct option_row ROWS[] = {
    SELECTION_ROW(AT(strategies)),
    {"--orders", "N", OPTION_NUMBER, AT(orders), 1, 1000000000, NULL,
     "orders in all, of which each strategy gets as many"},
    {"--slice", "N", OPTION_NUMBER, AT(plan.slice), 1, 1000000, NULL,
     "units of stock at most; each stock is sold out, then the product is reset"},
    {"--connections", "C", OPTION_NUMBER, AT(plan.connections), 1, 10000, NULL,
     "connections, each with one order at a time"},
    {"--resume", "FILE", OPTION_TEXT, AT(resume), 0, 0, NULL,
     "keep here which strategies are done; where it is there, go on from it"},
};

static const struct option_rows OPTIONS = OPTION_ROWS(ROWS);

static const struct command_line LINE = {
    .name = "soak",
    .operands = "",
    .summary =
        "Sells for a long time under each strategy, one after the other, by one service. Stock after stock is sold\n"
        "out, and the books are held against what clients were told. Memory and open descriptors are looked at\n"
        "after the first stock and after the last. It starts a private stack and a service, and removes them again.",
    .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
};

/* ---- what is done already ------------------------------------------------------------------------------ */

static json_t *settings_json(const struct soak_settings *settings)
{
    return json_pack("{s:s, s:I, s:I, s:I}", "strategies", settings->strategies, "orders",
                     (json_int_t)settings->orders, "slice", (json_int_t)settings->plan.slice, "connections",
                     (json_int_t)settings->plan.connections);
}

static const json_t *row_of(const json_t *document, const char *strategy)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        const char *name = json_string_value(json_object_get(row, "strategy"));
        if (name && strcmp(name, strategy) == 0)
            return row;
    }
    return NULL;
}

/* The document to go on with: that of the file, or a new one. Otherwise says why not, and returns the exit status of that. */
static enum exit_status begin(const struct soak_settings *settings, json_t **ret_document)
{
    json_auto_t *now = settings_json(settings);
    if (!now || !settings->resume || access(settings->resume, F_OK) != 0) {
        *ret_document = now ? result_new("soak", json_incref(now)) : NULL;
        if (*ret_document && json_object_set_new(*ret_document, "rows", json_array()) == 0)
            return ENDED_AS_EXPECTED;
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    *ret_document = result_load(settings->resume);
    if (*ret_document && strcmp(result_kind_name(*ret_document), "soak") == 0 &&
        json_equal(json_object_get(*ret_document, "settings"), now))
        return ENDED_AS_EXPECTED;
    if (*ret_document)
        complain("%s is of other settings: remove it, or name another one", settings->resume);
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

static bool sell_under(struct lab *lab, const struct soak_settings *settings, const json_t *strategy,
                       struct progress *progress, json_t *document)
{
    struct subject subject;
    struct soak_tally tally;
    if (!subject_read(strategy, &subject))
        return false;
    if (row_of(document, subject.name))
        return true;
    if (subject.available && !soak_strategy(lab, &settings->plan, &subject, progress, &tally))
        return false;
    json_t *row = soak_row_new(&subject, subject.available ? &tally : NULL);
    if (json_array_append_new(json_object_get(document, "rows"), row) != 0) {
        complain("out of memory");
        return false;
    }
    return keep(settings, document);
}

static int soak_in(struct lab *lab, struct soak_settings *settings, json_t *document)
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
    int64_t count = (int64_t)json_array_size(strategies);
    settings->plan.orders = (settings->orders + count - 1) / count;
    struct progress progress = progress_begin((size_t)count);
    bool well = true;
    size_t i;
    json_t *strategy;
    json_array_foreach(strategies, i, strategy) {
        well = well && sell_under(lab, settings, strategy, &progress, document);
        progress_step_done(&progress);
    }
    progress_wipe();
    /* What came before the end of a run that broke off may have taken hours; with --resume it is kept already, and a result
     * of before is not replaced by a part of the next. */
    const json_t *rows = json_object_get(document, "rows");
    bool is_worth_it = well || (!settings->resume && json_array_size(rows) > 0);
    bool written = !is_worth_it || output_write(&soak_result, document, &settings->output);
    return well && written ? result_status(rows, settings->strategies) : ENDED_ENVIRONMENT;
}

int soak_main(int argc, char **argv)
{
    struct soak_settings settings = {.strategies = "safe",
                                     .orders = 10000000,
                                     .plan = {.slice = 25000, .connections = 32},
                                     .output = OUTPUT_DEFAULTS};
    struct texts operands;
    switch (options_parse(&LINE, argc, argv, &settings, &operands)) {
    case OPTIONS_OK: break;
    case OPTIONS_HELP: return ENDED_AS_EXPECTED;
    case OPTIONS_BAD: return ENDED_USAGE;
    }
    if (!output_valid(&settings.output) || (settings.resume && !output_file_valid(settings.resume)))
        return ENDED_USAGE;
    json_auto_t *document = NULL;
    enum exit_status begun = begin(&settings, &document);
    if (begun != ENDED_AS_EXPECTED)
        return begun;

    interrupt_watch();
    const struct lab_settings place = {
        .instances = 1, .instances_default = 1, .servers = "private", .strategies = settings.strategies};
    struct lab lab;
    int status = ENDED_ENVIRONMENT;
    if (lab_open(&place, &lab)) {
        status = soak_in(&lab, &settings, document);
        lab_close(&lab);
    }
    return interrupted() ? 128 + interrupted() : status;
}
