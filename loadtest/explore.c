/* `loadtest explore`: a few orders of each strategy, held at every step, in every order in which they can go on. */
#include "loadtest/bench_addresses.h"
#include "loadtest/commands.h"
#include "loadtest/complain.h"
#include "loadtest/explore_crew.h"
#include "loadtest/interrupt.h"
#include "loadtest/output.h"
#include "loadtest/result.h"
#include "loadtest/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STOCK_MOST = 1000, JOBS_MOST = 16, STRATEGIES_MOST = 128 };

struct explore_settings {
    const char *strategies;
    const char *quantities;
    const char *servers;
    int64_t jobs;
    struct explore_plan plan;
    struct output_settings output;
};

#define AT(member) offsetof(struct explore_settings, member)

static const char *const SERVER_CHOICES[] = {"private", "environment", NULL};

static const struct option_row ROWS[] = {
    {"--strategies", "LIST", OPTION_TEXT, AT(strategies), 0, 0, NULL,
     "names and groups with commas between; groups are all, unsafe,\n"
     "one-process, while-lease-holds and safe"},
    {"--actors", "N", OPTION_NUMBER, AT(plan.actors), 1, ACTORS_MAX, NULL, "orders at a time"},
    {"--stock", "S", OPTION_NUMBER, AT(plan.stock), 0, STOCK_MOST, NULL, "units there are"},
    {"--quantities", "LIST", OPTION_TEXT, AT(quantities), 0, 0, NULL,
     "units that each order wants, with commas between; the last number\nis also that of all further orders"},
    {"--limit", "N", OPTION_NUMBER, AT(plan.limit), 0, INT32_MAX, NULL,
     "schedules at most, for each strategy; 0: all"},
    {"--time", "TIME", OPTION_DURATION, AT(plan.time_ms), 0, 86400000, NULL,
     "at most, for each strategy; 0: as long as it takes"},
    {"--jobs", "N", OPTION_NUMBER, AT(jobs), 1, JOBS_MOST, NULL, "processes that explore side by side"},
    {"--servers", "WHICH", OPTION_CHOICE, AT(servers), 0, 0, SERVER_CHOICES,
     "a private stack, or the servers that DATABASE_URL and its kin in the\nenvironment name"},
};

static const struct option_rows OPTIONS = OPTION_ROWS(ROWS);

static const struct command_line LINE = {
    .name = "explore",
    .operands = "",
    .summary =
        "Lets a few orders of each strategy run in every order in which their steps can follow each other, and\n"
        "compares the books after each. The steps are the service's own, on real servers; a strategy is safe\n"
        "here if not one schedule oversells, and its share of bad schedules is the same in every run.",
    .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
};

/* ---- what was asked for --------------------------------------------------------------------------------------- */

static bool parse_quantities(const char *list, int64_t *ret_quantities)
{
    int64_t last = 0;
    const char *rest = list;
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        char word[16];
        size_t length = rest ? strcspn(rest, ",") : 0;
        snprintf(word, sizeof word, "%.*s", (int)length, rest ? rest : "");
        if (rest && (length >= sizeof word || !parse_number(word, &last) || last < 1 || last > STOCK_MOST)) {
            complain("--quantities '%s' is not valid (numbers from 1 to %d with commas between)", list,
                     STOCK_MOST);
            return false;
        }
        ret_quantities[i] = last;
        rest = rest && rest[length] ? rest + length + 1 : NULL;
    }
    return true;
}

static json_t *strategy_table(void)
{
    json_t *table = json_array();
    for (size_t i = 0; i < strategy_count; i++)
        json_array_append_new(table, json_pack("{s:s, s:s}", "name", strategies[i].name, "guarantee",
                                               guarantee_name(strategies[i].guarantee)));
    return table;
}

/* How many of the strategies LIST means; 0, having said what is valid, where it means none. */
static size_t choose(const char *list, const struct strategy **ret_chosen)
{
    size_t i, count = 0;
    json_t *row;
    json_auto_t *table = strategy_table();
    json_auto_t *rows = selection_rows(table, list);
    json_array_foreach(rows, i, row) {
        if (count < STRATEGIES_MOST)
            ret_chosen[count++] = strategy_find(json_string_value(json_object_get(row, "name")));
    }
    return count;
}

/* ---- servers -------------------------------------------------------------------------------------------------- */

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static bool learn_addresses(struct lab *lab, const struct explore_settings *settings,
                            struct lock_config *ret_addresses)
{
    if (strcmp(settings->servers, "private") == 0) {
        if (!addresses_read(lab, ret_addresses))
            return false;
    } else {
        *ret_addresses = (struct lock_config){
            .database_url = from_environment("DATABASE_URL"),
            .redis_url = from_environment("REDIS_URL"),
            .redlock_urls = from_environment("REDLOCK_URLS"),
            .zookeeper_connect = from_environment("ZOOKEEPER_CONNECT"),
            .etcd_endpoints = from_environment("ETCD_ENDPOINTS"),
            .prefix = "oversell-explore",
        };
    }
    if (!*ret_addresses->database_url)
        complain("there is no database");
    return *ret_addresses->database_url;
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static json_t *settings_json(const struct explore_settings *settings)
{
    return json_pack("{s:s, s:I, s:I, s:s, s:s}", "strategies", settings->strategies, "actors",
                     (json_int_t)settings->plan.actors, "stock", (json_int_t)settings->plan.stock,
                     "quantities", settings->quantities, "faults", "none");
}

static int status_of(const json_t *rows)
{
    size_t i;
    json_t *row;
    bool failed = false;
    json_array_foreach(rows, i, row) {
        const char *verdict = json_string_value(json_object_get(row, "verdict"));
        failed |= strcmp(verdict, explore_verdict_name(EXPLORE_BROKEN)) == 0 ||
                  strcmp(verdict, explore_verdict_name(EXPLORE_NOT_CAUGHT)) == 0;
    }
    return failed ? ENDED_BROKEN : ENDED_AS_EXPECTED;
}

static int explore_in(struct lab *lab, const struct explore_settings *settings,
                      const struct strategy *const *chosen, size_t count)
{
    struct lock_config addresses;
    json_t *found[STRATEGIES_MOST] = {0};
    json_auto_t *rows = json_array();
    if (!learn_addresses(lab, settings, &addresses))
        return ENDED_ENVIRONMENT;
    bool explored = explore_crew_run(&settings->plan, &addresses, chosen, count, (size_t)settings->jobs,
                                     found);
    for (size_t i = 0; i < count; i++)
        if (found[i] && json_array_append_new(rows, found[i]) != 0)
            explored = false;
    if (!explored)
        return ENDED_ENVIRONMENT;
    json_auto_t *document = result_new("explore", settings_json(settings));
    if (!document || json_object_set(document, "rows", rows) != 0) {
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    return output_write(document, &settings->output) ? status_of(rows) : ENDED_ENVIRONMENT;
}

int explore_main(int argc, char **argv)
{
    struct explore_settings settings = {
        .strategies = "all",
        .quantities = "1",
        .servers = "private",
        .jobs = sysconf(_SC_NPROCESSORS_ONLN),
        .plan = {.actors = 2, .stock = 1},
        .output = OUTPUT_DEFAULTS,
    };
    struct texts operands;
    const struct strategy *chosen[STRATEGIES_MOST];
    settings.jobs = settings.jobs < 1 ? 1 : settings.jobs > JOBS_MOST ? JOBS_MOST : settings.jobs;
    switch (options_parse(&LINE, argc, argv, &settings, &operands)) {
    case OPTIONS_OK: break;
    case OPTIONS_HELP: return ENDED_AS_EXPECTED;
    case OPTIONS_BAD: return ENDED_USAGE;
    }
    size_t count = choose(settings.strategies, chosen);
    struct lab_settings place = {
        .servers = settings.servers, .database = true, .strategies = settings.strategies};
    if (count == 0 || !parse_quantities(settings.quantities, settings.plan.quantities) ||
        !output_valid(&settings.output) || !lab_settings_valid(&place))
        return ENDED_USAGE;

    interrupt_watch();
    struct lab lab;
    int status = ENDED_ENVIRONMENT;
    if (lab_open(&place, &lab)) {
        status = explore_in(&lab, &settings, chosen, count);
        lab_close(&lab);
    }
    return interrupted() ? 128 + interrupted() : status;
}
