/* `loadtest check shop.json`: sells a small stock of a user's service under load, again and again, and compares the answers, the stock
 * and the orders. `loadtest init` writes the description that it needs. */
#include "loadtest/own/check.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/progress.h"
#include "loadtest/command/run_command.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS_FOR_EACH_ORDER = 4, SETTLE_TRIES = 100, SETTLE_MS = 50 };

struct check {
    const char *path;
    struct description description;
    int64_t stock;
    int64_t requests; /* 0: as many as REQUESTS_FOR_EACH_ORDER says */
    int64_t connections, repeat, timeout_ms;
    struct shop_settings service;
    struct output_settings output;
    const char *junit;
};

#define AT(member) offsetof(struct check, member)

static const struct option_row ROWS[] = {
    {"--stock", "S", OPTION_NUMBER, AT(stock), 1, 1000000, NULL, "Units in stock when a sale begins."},
    {"--requests", "R", OPTION_NUMBER, AT(requests), 0, 10000000, NULL,
     "Requests in a sale. 0: four times as many as the stock can serve."},
    {"--connections", "C", OPTION_NUMBER, AT(connections), 1, SHOP_CONNECTIONS_MAX, NULL,
     "Connections in total. Each has one request in progress at a time."},
    {"--repeat", "K", OPTION_NUMBER, AT(repeat), 1, 10000, NULL, "Number of sales."},
    {"--instances", "N", OPTION_NUMBER, AT(service.instances), 1, SHOP_INSTANCES_MAX, NULL,
     "Instances of the service to start, each on a separate port. They share the database."},
    {"--env", "NAME=VALUE", OPTION_TEXTS, AT(service.env), 0, 0, NULL,
     "Environment variable of the instances, in place of the description's. Repeat the option for more."},
    {"--timeout", "T", OPTION_DURATION, AT(timeout_ms), 1, 600000, NULL, "Longest wait for an answer."},
    {"--start-time", "T", OPTION_DURATION, AT(service.start_ms), 100, 600000, NULL,
     "Longest wait until an instance is ready."},
};
static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

static const struct option_row FILE_ROWS[] = {
    {"--export-junit", "FILE", OPTION_TEXT, AT(junit), 0, 0, NULL,
     "Write JUnit XML to FILE, with a test case for each sale."},
};
static const struct option_rows FILES = OPTION_ROWS("For continuous integration", FILE_ROWS);

/* ---- before the start ----------------------------------------------------------------------------------------------- */

static bool are_variables(const struct texts *env)
{
    for (size_t i = 0; i < env->count; i++)
        if (env->item[i][0] == '=' || !strchr(env->item[i], '=')) {
            complain("--env needs NAME=VALUE, not '%s'", env->item[i]);
            return false;
        }
    return true;
}

static int begin(void *context, const struct texts *operands)
{
    struct check *check = context;
    check->path = operands->item[0];
    if (!are_variables(&check->service.env) || !output_valid(&check->output) ||
        (check->junit && !output_file_valid(check->junit)) ||
        !description_load(check->path, &check->description))
        return ENDED_USAGE;
    const struct description *description = &check->description;
    if (check->requests == 0)
        check->requests = REQUESTS_FOR_EACH_ORDER *
                          ((check->stock + description->units - 1) / description->units);
    if (description->start || (check->service.instances == 1 && check->service.env.count == 0))
        return COMMAND_GOES_ON;
    complain("%s: --instances and --env are for a service that the command starts; add start", check->path);
    description_close(&check->description);
    return ENDED_USAGE;
}

/* ---- one sale --------------------------------------------------------------------------------------------------------- */

/* Resets, and reads what there is. False, having said why on stderr. */
static bool prepare(struct check *check, struct shop_service *service, struct check_sale *sale)
{
    const struct description *description = &check->description;
    int64_t sold;
    sale->units = description->units;
    if (!shop_service_reset(service, check->stock) ||
        !shop_service_number(service, "stock", description->stock, &sale->stock) ||
        !shop_service_number(service, "sold", description->sold, &sold))
        return false;
    if (sale->stock != check->stock)
        complain("reset: after it the stock is %" PRId64 ", and not %" PRId64
                 "; reset must set the stock to {stock}",
                 sale->stock, check->stock);
    else if (sold != 0)
        complain("reset: after it %" PRId64 " units are sold already; reset must delete the orders", sold);
    else
        return true;
    return false;
}

/* Reads what was sold. A request that the client has given up may still be placed, so the figures have to be the same twice. */
static bool read_books(struct check *check, struct shop_service *service, struct check_sale *sale)
{
    const struct description *description = &check->description;
    int64_t left = INT64_MIN, sold = INT64_MIN;
    for (int tries = 0; tries < SETTLE_TRIES; tries++) {
        if (!shop_service_number(service, "stock", description->stock, &sale->left) ||
            !shop_service_number(service, "sold", description->sold, &sale->sold))
            return false;
        if (sale->counts.unanswered == 0 || (left == sale->left && sold == sale->sold))
            break;
        left = sale->left;
        sold = sale->sold;
        if (!sleep_unless_interrupted(SETTLE_MS))
            return false;
    }
    size_t i;
    json_t *sql;
    json_array_foreach(description->invariant, i, sql) {
        bool holds;
        if (!shop_service_holds(service, json_string_value(sql), &holds))
            return false;
        if (!holds && sale->broken++ == 0)
            sale->broken_sql = json_string_value(sql);
    }
    return true;
}

/* A sale in which nothing was sold shows nothing. */
static bool has_sold(const struct check_sale *sale)
{
    const struct shop_counts *counts = &sale->counts;
    if (counts->sold > 0 || sale->sold > 0)
        return true;
    if (counts->odd.status)
        complain(
            "request: no order was placed; the first answer is %ld: %s. Check url, body and headers of request",
            counts->odd.status, counts->odd.text);
    else if (counts->unanswered > 0)
        complain(
            "request: no request got an answer: %s. Check the url of request, or give more time with --timeout",
            counts->odd.text);
    else
        complain("request: every answer was one of sold_out, although there were %" PRId64
                 " units; check that request orders the "
                 "product that reset fills",
                 sale->stock);
    return false;
}

static json_t *sell(struct check *check, struct shop_service *service, int64_t run)
{
    /* A large struct, with a histogram. */
    struct check_sale *sale = calloc(1, sizeof *sale);
    const struct shop_load load = {.service = service,
                                   .requests = check->requests,
                                   .connections = check->connections,
                                   .first = (run - 1) * check->requests,
                                   .timeout_ms = check->timeout_ms};
    json_t *row = NULL;
    if (!sale)
        complain("out of memory");
    bool sold = sale && prepare(check, service, sale) && shop_load_run(&load, &sale->counts) &&
                shop_service_alive(service) && read_books(check, service, sale) && has_sold(sale);
    if (sold && !(row = check_row(sale, run)))
        complain("out of memory");
    free(sale);
    return row;
}

/* ---- the command ---------------------------------------------------------------------------------------------------------- */

static json_t *settings_json(const struct check *check)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "description", check->path, "stock",
                     (json_int_t)check->stock, "requests", (json_int_t)check->requests, "units",
                     (json_int_t)check->description.units, "connections", (json_int_t)check->connections,
                     "repeat", (json_int_t)check->repeat, "instances", (json_int_t)check->service.instances,
                     "timeout_ms", (json_int_t)check->timeout_ms);
}

static int write_result(const struct check *check, json_t *rows)
{
    json_auto_t *document = result_new(check_result.name, settings_json(check));
    int status = ENDED_AS_EXPECTED;
    size_t i;
    json_t *row;
    if (!document || json_object_set(document, "rows", rows) != 0) {
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    json_array_foreach(rows, i, row) {
        if (strcmp(result_text(row, "verdict"), check_verdict_name(CHECK_CLEAN)) != 0)
            status = ENDED_BROKEN;
    }
    if (!output_write(&check_result, document, &check->output) ||
        (check->junit && !check_write_junit(document, check->junit)))
        return ENDED_ENVIRONMENT;
    return status;
}

static int run(void *context)
{
    struct check *check = context;
    struct shop_service service;
    json_auto_t *rows = json_array();
    int status = ENDED_ENVIRONMENT;
    struct progress progress = progress_begin((size_t)check->repeat);
    progress_label(&progress, "starting");
    if (rows && shop_service_open(&check->description, &check->service, &service)) {
        bool well = true;
        for (int64_t i = 1; i <= check->repeat && well; i++) {
            progress_label(&progress, "sale %" PRId64, i);
            progress_update(&progress, 0, "");
            json_t *row = sell(check, &service, i);
            well = row && json_array_append_new(rows, row) == 0;
            progress_step_done(&progress);
        }
        progress_wipe();
        shop_service_close(&service);
        status = well ? write_result(check, rows) : ENDED_ENVIRONMENT;
    }
    progress_wipe();
    description_close(&check->description);
    return status;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "check",
            .operands = "FILE",
            .min_operands = 1,
            .max_operands = 1,
            .summary =
                "Sells a small stock of your own service under load, and finds out whether it oversells.\n"
                "\n"
                "FILE describes the service: how to start it, how to order, and the SQL that returns stock and orders. "
                "`loadtest init` writes an example. After each sale the command compares the answers, the stock "
                "and the orders. Exit status 1: a sale was not clean.",
            .example = "loadtest check shop.json --repeat 5",
            .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}, {&FILES, 0}},
        },
    .begin = begin,
    .run_alone = run,
};

int check_main(int argc, char **argv)
{
    static struct check check = {
        .stock = 100,
        .connections = 16,
        .repeat = 1,
        .timeout_ms = 30000,
        .service = {.instances = 1, .start_ms = 30000},
        .output = OUTPUT_DEFAULTS,
    };
    return run_command(&COMMAND, argc, argv, &check);
}
