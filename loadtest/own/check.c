/* `loadtest check`: sends more orders to a user's service than there are units, and compares answers, stock and orders. */
#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/progress.h"
#include "loadtest/command/run_command.h"
#include "loadtest/own/check_row.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTLE_MS = 2000, SETTLE_POLL_MS = 50, REQUESTS_MAX = 10000000, ORDERS_LEAST = 10 };

struct check_settings {
    int64_t stock;
    int64_t requests; /* 0: four times the stock */
    int64_t connections, repeat, instances;
    struct texts env, allow;
    unsigned allowed; /* bits of verdicts */
    struct output_settings output;
    struct shop_description description;
};

#define AT(member) offsetof(struct check_settings, member)

static const struct option_row ROWS[] = {
    {"--stock", "N", OPTION_NUMBER, AT(stock), 1, 1000000, NULL,
     "Units in stock: {stock} in the file. The command asks for the stock after each reset. Without this "
     "option: 100, or, if \"units\" is more than 1, so many that some are left over."},
    {"--requests", "N", OPTION_NUMBER, AT(requests), 0, REQUESTS_MAX, NULL,
     "Requests in each run. 0: enough to buy four times the stock."},
    {"--connections", "C", OPTION_NUMBER, AT(connections), 1, 900, NULL,
     "Connections. Each has one request in progress at a time."},
    {"--repeat", "N", OPTION_NUMBER, AT(repeat), 1, 1000, NULL, "Runs, each after a reset."},
    {"--instances", "N", OPTION_NUMBER, AT(instances), 1, INSTANCES_MAX, NULL,
     "Processes of the service that share the database. The command starts them, so the file needs \"start\" and {port}."},
    {"--env", "NAME=VALUE", OPTION_TEXTS, AT(env), 0, 0, NULL,
     "An environment variable of the service, instead of the one in FILE. Repeat the option for more."},
    {"--allow", "VERDICT", OPTION_TEXTS, AT(allow), 0, 0, NULL,
     "turned-away or failing: count it as clean, for a service that may refuse or fail. Repeat the option for both."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

/* Of at least ORDERS_LEAST orders, and about 100 units. */
static int64_t default_stock(int64_t units)
{
    return check_default_stock(units, 100 / units > ORDERS_LEAST ? 100 / units : ORDERS_LEAST);
}

static int check_begin(void *context, const struct texts *operands)
{
    struct check_settings *settings = context;
    if (!output_valid(&settings->output))
        return ENDED_USAGE;
    if (!shop_description_read(operands->item[0], &settings->description))
        return ENDED_USAGE;
    if (settings->stock == 0)
        settings->stock = default_stock(settings->description.units);
    return check_allowed(&settings->allow, &settings->allowed) &&
                   shop_can_have_env(&settings->description, &settings->env) &&
                   shop_can_have_instances(&settings->description, (size_t)settings->instances)
               ? COMMAND_GOES_ON
               : ENDED_USAGE;
}

/* ---- a run --------------------------------------------------------------------------------------------- */

/* What all runs share. */
struct check {
    const struct check_settings *settings;
    struct shop_servers servers;
    struct shop_service service;
    struct shop_database *database;
    struct shop_stock before; /* after the last reset */
    int64_t requests, first;  /* of the next run, and the number of its first request */
    struct progress progress;
    json_t *part;                /* of the run that an interrupt ended; NULL: none */
    struct shop_answers answers; /* large */
};

static bool restock(struct check *check)
{
    return shop_service_restock(&check->service, check->database, check->settings->stock, &check->before);
}

static void say_not_sold(struct check *check, const struct shop_answer *answer)
{
    shop_say_not_sold(&check->settings->description, answer, check->before.left);
    if (!answer->status)
        shop_database_say_open(check->database);
}

/* One request that has to succeed: it shows mistakes of the file before the load would bury them. */
static bool probe(struct check *check)
{
    const struct shop_description *description = &check->settings->description;
    struct shop_values values = shop_values_of(&check->service, 0);
    struct shop_answer answer;
    values.stock = check->settings->stock;
    values.request = check->first++;
    shop_http_order(description, &values, &answer);
    if (answer.meaning == SHOP_SOLD || answer.meaning == SHOP_ACCEPTED)
        return shop_database_settle(check->database);
    if (!interrupted() && shop_service_runs(&check->service))
        say_not_sold(check, &answer);
    return false;
}

static struct check_counts count(const struct check *check, const struct shop_stock *after)
{
    const struct check_answers answers = check_answers_of(&check->answers);
    return check_counts_of(&check->settings->description, &check->before, after, &answers);
}

/* A service may answer before the order is in the database, and may still work on a request that it has not answered in time: it gets a
 * moment for that. */
static bool read_after(struct check *check, struct shop_stock *ret_after)
{
    struct check_counts counts;
    if (!shop_database_settle(check->database))
        return false;
    int64_t until_us = monotonic_us() + (int64_t)SETTLE_MS * 1000;
    do {
        if (!shop_database_read(check->database, ret_after))
            return false;
        counts = count(check, ret_after);
    } while ((counts.lost > 0 || check->answers.unanswered > 0) && monotonic_us() < until_us &&
             sleep_unless_interrupted(SETTLE_POLL_MS));
    return !interrupted();
}

static void show_progress(void *context, int64_t ended)
{
    struct check *check = context;
    progress_update(&check->progress, (double)ended / (double)check->requests, "");
}

/* Orders are missing although their answers have 2xx, but these may mean something else. */
static bool is_doubtful(const struct check *check, const struct check_counts *counts)
{
    const char *doubt = check->answers.doubt;
    if (check_verdict(counts, 0) != VERDICT_ANSWERS_LOST || counts->lost == 0 || !*doubt)
        return false;
    shop_complain(&check->settings->description, "request",
                  "was answered with 2xx for %" PRId64
                  " units more than were sold, and some of these answers may not mean sold. Add %s",
                  counts->lost, doubt);
    return true;
}

/* What run NUMBER has shown until the interrupt. */
static void keep_part(struct check *check, int64_t number)
{
    const struct shop_answers *answers = &check->answers;
    struct shop_stock now;
    if (!shop_database_read(check->database, &now))
        return;
    const struct check_counts counts = count(check, &now);
    int64_t ended = answers->sold + answers->sold_out + answers->accepted + answers->failed +
                    answers->unanswered;
    check->part = check_row_new(number, &counts, answers, check->settings->allowed);
    if (check->part)
        json_object_set_new(check->part, "ended", json_integer((json_int_t)ended));
}

/* The row of run NUMBER; NULL, having said why unless it was an interrupt. */
static json_t *run_once(struct check *check, int64_t number)
{
    const struct check_settings *settings = check->settings;
    struct shop_stock after;
    progress_label(&check->progress, "run %" PRId64, number);
    if (!restock(check))
        return NULL;
    check->requests = settings->requests;
    if (check->requests == 0)
        check->requests = check->before.left > INT64_MAX / 4
                              ? INT64_MAX
                              : 4 * check->before.left / settings->description.units;
    if (check->requests < 1 || check->requests > REQUESTS_MAX) {
        complain("%" PRId64
                 " units in stock are too many or too few for four times as many requests. Use --requests",
                 check->before.left);
        return NULL;
    }
    const struct shop_load load = {.description = &settings->description,
                                   .service = &check->service,
                                   .stock = settings->stock,
                                   .requests = check->requests,
                                   .first = check->first,
                                   .connections = (size_t)settings->connections};
    check->first += check->requests;
    bool ok = shop_load_run(&load, &check->answers, show_progress, check) && read_after(check, &after) &&
              shop_service_runs(&check->service);
    progress_step_done(&check->progress);
    if (!ok && interrupted())
        keep_part(check, number);
    else if (!ok && check->answers.unanswered > 0)
        shop_database_say_open(check->database);
    if (!ok)
        return NULL;
    const struct check_counts counts = count(check, &after);
    if (is_doubtful(check, &counts))
        return NULL;
    if (check->answers.sold + check->answers.accepted == 0 && counts.sold == 0) {
        shop_complain(&settings->description, "request",
                      "never succeeded in %" PRId64 " requests. The first failure: %.200s", check->requests,
                      *check->answers.first_failure ? check->answers.first_failure : "sold out");
        return NULL;
    }
    json_t *row = check_row_new(number, &counts, &check->answers, settings->allowed);
    if (!row)
        complain("out of memory");
    return row;
}

/* ---- all runs ------------------------------------------------------------------------------------------ */

static json_t *settings_json(const struct check *check)
{
    const struct check_settings *settings = check->settings;
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "file", settings->description.path, "stock",
                     (json_int_t)check->before.left, "requests", (json_int_t)check->requests, "connections",
                     (json_int_t)settings->connections, "instances", (json_int_t)settings->instances, "units",
                     (json_int_t)settings->description.units);
}

/* Prints the runs that have ended, and after an interrupt what the last one has shown. */
static int print_runs(struct check *check, const json_t *rows)
{
    json_auto_t *document = result_new(check_result.name, settings_json(check));
    if (!document || json_object_set(document, "rows", (json_t *)rows) != 0 ||
        (check->part && json_object_set(document, "interrupted", check->part) != 0)) {
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    return output_write(&check_result, document, &check->settings->output) ? result_status(rows, "")
                                                                           : ENDED_ENVIRONMENT;
}

static int run_all(struct check *check)
{
    json_auto_t *rows = json_array();
    check->first = 1;
    bool ok = rows && restock(check) && probe(check);
    for (int64_t i = 1; ok && i <= check->settings->repeat; i++) {
        json_t *row = run_once(check, i);
        ok = row && json_array_append_new(rows, row) == 0;
    }
    progress_wipe();
    if (ok || check->part || (interrupted() && json_array_size(rows) > 0))
        return print_runs(check, rows);
    return ENDED_ENVIRONMENT;
}

static int check_run(void *context)
{
    const struct check_settings *settings = context;
    struct check *check = calloc(1, sizeof *check);
    int status = ENDED_ENVIRONMENT;
    if (!check) {
        complain("out of memory");
        return status;
    }
    check->settings = settings;
    check->progress = progress_begin((size_t)settings->repeat);
    progress_label(&check->progress, "starting");
    progress_update(&check->progress, 0, "");
    if (shop_servers_open(&settings->description, &check->servers)) {
        const struct shop_plan plan = {.description = &settings->description,
                                       .folder = check->servers.testbed.dir,
                                       .postgres = check->servers.postgres,
                                       .redis = check->servers.redis,
                                       .instances = (size_t)settings->instances,
                                       .env = &settings->env};
        check->database = shop_database_open(check->servers.postgres, &settings->description,
                                             settings->stock);
        if (check->database && shop_service_start(&plan, &check->service))
            status = run_all(check);
        shop_database_close(check->database);
        shop_service_stop(&check->service);
        shop_servers_close(&check->servers);
    }
    progress_wipe();
    json_decref(check->part);
    free(check);
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
                "Tests under load whether your own service, in any language, oversells.\n"
                "\n"
                "FILE, usually shop.json, describes the service: how it starts, the request that buys, and SQL for the "
                "stock and the sales; loadtest init writes one to start from. The command starts the service and, unless "
                "FILE names real ones, private servers. It resets the stock and sends more requests than there are units. "
                "Then it compares the answers with the stock and the sales. On exit it stops everything that it "
                "started.\n"
                "\n"
                "Verdicts: clean; oversold (more units were sold than there were); drift (stock and sales do not add "
                "up); invariant-broken; answers-lost (an acknowledged order is missing); turned-away (buyers were refused "
                "although units were left); failing (more than 5 % of the answers say neither sold nor sold out). Exit status 1 if a run is "
                "not clean.",
            .example = "loadtest check shop.json --instances 2 --repeat 3 --export-junit check.xml",
            .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
        },
    .begin = check_begin,
    .run_alone = check_run,
};

int check_main(int argc, char **argv)
{
    struct check_settings settings = {
        .connections = 16, .repeat = 1, .instances = 1, .output = OUTPUT_DEFAULTS};
    int status = run_command(&COMMAND, argc, argv, &settings);
    shop_description_free(&settings.description);
    return status;
}
