/* `loadtest explore`: a stateless model checker for the strategies. It runs a few orders against real servers in every sequence
 * in which their steps can follow each other, and looks for sequences that oversell or break something else.
 *
 * Schedule: a sequence of transitions, written `A>read B>end A>end` (core/schedule_notation.h). A transition lets one order
 * run to its next step, or is a fault: a lease ends, an order crashes, a wait times out (core/transition.h).
 * Holding orders: each order is an actor with its own thread in the service's engine. The engine reports every step to an
 * observer, which blocks the thread until the controller releases it (exec/actor_thread.c). A lock that is taken makes one
 * try and holds the actor (exec/controlled_lock.c), so that nothing depends on time.
 * End of a transition: the controller waits until every actor is held, has ended, or is blocked in PostgreSQL, which
 * pg_blocking_pids tells (exec/execute_transition.c). Then the next enabled transitions are known (exec/execution.c).
 * Search: depth first over all schedules, each replayed from a fresh state; or with growing preemption bounds; or random
 * samples, uniform or by PCT (core/depth_first_search.h and core/pct_scheduler.h name the papers).
 * Invariants: checked after every transition and at the end of a schedule (exec/invariants.c).
 * Counterexample: a schedule that breaks one. The simplest is kept (spec/totals.c), replayed ten times (run/campaign.c),
 * narrated (explain/narration.c) and explained by the conflict between two orders (explain/explanation.c).
 *
 * Folders, each of which uses only those before it: core/ (search and notation, pure), exec/ (one execution on real servers),
 * spec/ (scenario files, totals, verdict), explain/ (text for people), run/ (a strategy's searches, worker processes,
 * checkpoints, --replay), serve/ (the step-through page's questions). This file reads the options and starts the servers. */
#include "base/clock.h"
#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/selection.h"
#include "loadtest/explore/run/counterexample_output.h"
#include "loadtest/explore/run/explore_result.h"
#include "loadtest/explore/run/scenario_runner.h"
#include "loadtest/explore/run/worker_processes.h"
#include "loadtest/explore/serve/step_through.h"
#include "loadtest/report/output.h"
#include "loadtest/report/result.h"
#include "loadtest/testbed/addresses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STOCK_MOST = 1000, JOBS_MOST = 16, STRATEGIES_MOST = 128 };

struct explore_settings {
    const char *strategies;
    const char *quantities;
    const char *servers;
    const char *faults;
    const char *never; /* NULL: what each row promises */
    bool serve;
    int64_t jobs;
    struct texts replays;
    const char *save; /* NULL: nowhere */
    struct explore_plan plan;
    struct output_settings output;
};

#define AT(member) offsetof(struct explore_settings, member)

static const char *const FAULT_CHOICES[] = {"none", "crash", "expire", "timeout", NULL};
static const char *const SERVER_CHOICES[] = {"private", "environment", NULL};

static const struct option_row ROWS[] = {
    SELECTION_ROW(AT(strategies)),
    {"--actors", "N", OPTION_NUMBER, AT(plan.actors), 1, ACTORS_MAX, NULL, "orders at a time"},
    {"--stock", "S", OPTION_NUMBER, AT(plan.stock), 0, STOCK_MOST, NULL, "units there are"},
    {"--quantities", "LIST", OPTION_TEXT, AT(quantities), 0, 0, NULL,
     "units that each order wants, separated by commas; the last number\nalso applies to all further orders"},
    {"--faults", "WHICH", OPTION_CHOICE, AT(faults), 0, 0, FAULT_CHOICES,
     "the fault that happens once in a schedule, at any point. expire: the\n"
     "lease, session or connection of an order's lock ends. crash: an order\n"
     "dies, and with a lock in memory all orders of its process. timeout: an\n"
     "order's wait for another order times out"},
    {"--never", "LIST", OPTION_TEXT, AT(never), 0, 0, NULL,
     "judge only by these figures, separated by commas, and ignore the\n"
     "row's guarantee: oversold, drift, undersold, waited, deadlock, stuck, robbed,\n"
     "two-holders, failed, answers-wrong, false-refusal, leaked"},
    {"--limit", "N", OPTION_NUMBER, AT(plan.limits.schedules), 0, INT32_MAX, NULL,
     "schedules at most, for each strategy; 0: all"},
    {"--time", "TIME", OPTION_DURATION, AT(plan.limits.time_ms), 0, 86400000, NULL,
     "at most, for each strategy; 0: as long as it takes"},
    {"--bound", "N", OPTION_NUMBER, AT(plan.limits.bound), 0, DEPTH_MAX, NULL,
     "only schedules in which an order is kept from going on N times at\n"
     "most; those with 0 first, then with 1 … (with three orders and more\n"
     "that is how all are searched)"},
    {"--sample", "N", OPTION_NUMBER, AT(plan.limits.samples), 0, INT32_MAX, NULL,
     "so many schedules at random, instead of all"},
    {"--pct", "DEPTH", OPTION_NUMBER, AT(plan.limits.pct), 0, PCT_DEPTH_MAX, NULL,
     "of --sample: not uniform, but by random priorities of the orders that\nchange DEPTH - 1 times: "
     "finds a bug that few steps decide sooner"},
    {"--seed", "S", OPTION_NUMBER, AT(plan.limits.seed), 0, INT64_MAX, NULL, "what --sample begins with"},
    {"--replay", "WHAT", OPTION_TEXTS, AT(replays), 0, 0, NULL,
     "instead: run one schedule and tell it, such as\n"
     "'read-write s=1 q=1,1 A>read B>end A>end', or a file of them\n"
     "(explore/*.sched); repeat it for more"},
    {"--show", "N", OPTION_NUMBER, AT(plan.limits.show), 0, COUNTEREXAMPLES_MAX, NULL,
     "tell so many schedules of each strategy that went wrong, the plainest\nfirst, a column for each order"},
    {"--save", "DIR", OPTION_TEXT, AT(save), 0, 0, NULL,
     "write each witness there as a file for --replay, with what it came to\nas its expectation"},
    {"--checkpoint", "DIR", OPTION_TEXT, AT(plan.checkpoints), 0, 0, NULL,
     "keep there how far each strategy's search has come, and go on from\nthere the next time; --limit and --time "
     "are for one run then"},
    {"--serve", NULL, OPTION_FLAG, AT(serve), 0, 0, NULL,
     "instead: answer a question a line of stdin with a line of JSON, for the\n"
     "workshop's page, on the servers that the environment names"},
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
        "here if no schedule oversells, refuses an order wrongly or leaves a lock behind. Its share of bad\n"
        "schedules is the same in every run. Without --actors, --stock, --quantities and --faults each strategy is\n"
        "searched twice: first two orders of one unit each and a stock of one; then two orders of two units each\n"
        "and a stock of three, where one wait in each schedule may time out (as --stock 3 --quantities 2 --faults\n"
        "timeout). --limit and --time apply to each search.\n"
        "Exit status: 0 all as expected (also where a limit has left something out: unknown), 1 a promise was\n"
        "broken or a flaw not shown, 3 a search could not continue, 128 and more: interrupted. The finished rows\n"
        "are printed in every case.",
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

static bool parse_never(const char *list, unsigned *ret_never)
{
    char error[600];
    if (!list || figures_parse(list, ret_never, error, sizeof error))
        return true;
    complain("--never: %s", error);
    return false;
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

static struct lock_config addresses_of_environment(void)
{
    return (struct lock_config){
        .database_url = from_environment("DATABASE_URL"),
        .redis_url = from_environment("REDIS_URL"),
        .redlock_urls = from_environment("REDLOCK_URLS"),
        .zookeeper_connect = from_environment("ZOOKEEPER_CONNECT"),
        .etcd_endpoints = from_environment("ETCD_ENDPOINTS"),
        .prefix = "oversell-explore",
    };
}

static bool learn_addresses(struct lab *lab, const struct explore_settings *settings,
                            struct lock_config *ret_addresses)
{
    if (strcmp(settings->servers, "environment") == 0)
        *ret_addresses = addresses_of_environment();
    else if (!addresses_read(lab, ret_addresses))
        return false;
    if (!*ret_addresses->database_url)
        complain("there is no database");
    return *ret_addresses->database_url;
}

static int serve(void)
{
    struct lock_config addresses = addresses_of_environment();
    lock_configure(&addresses);
    return explore_serve(addresses.database_url);
}

/* ---- exploring ------------------------------------------------------------------------------------------------- */

static json_t *settings_json(const struct explore_settings *settings)
{
    const struct campaign_limits *limits = &settings->plan.limits;
    return json_pack("{s:s, s:I, s:I, s:s, s:s, s:s?, s:I, s:I, s:o, s:I, s:I, s:I, s:b}", "strategies",
                     settings->strategies, "actors", (json_int_t)settings->plan.actors, "stock",
                     (json_int_t)settings->plan.stock, "quantities", settings->quantities, "faults",
                     settings->faults, "never", settings->never, "limit", (json_int_t)limits->schedules,
                     "time_ms", (json_int_t)limits->time_ms, "bound",
                     limits->bound == NO_BOUND ? json_null() : json_integer((json_int_t)limits->bound),
                     "sample", (json_int_t)limits->samples, "pct", (json_int_t)limits->pct, "seed",
                     (json_int_t)limits->seed, "larger_orders", settings->plan.twice);
}

static int explore_in(struct lab *lab, const struct explore_settings *settings,
                      const struct strategy *const *chosen, size_t count)
{
    struct lock_config addresses;
    json_t *found[STRATEGIES_MOST] = {0};
    json_auto_t *rows = json_array();
    if (!learn_addresses(lab, settings, &addresses))
        return ENDED_ENVIRONMENT;
    if (settings->plan.checkpoints && mkdir(settings->plan.checkpoints, 0777) != 0 && errno != EEXIST) {
        complain("cannot make %s: %s", settings->plan.checkpoints, strerror(errno));
        return ENDED_ENVIRONMENT;
    }
    int64_t began_us = monotonic_us();
    bool explored = worker_processes_run(&settings->plan, &addresses, chosen, count, (size_t)settings->jobs,
                                         found);
    json_auto_t *missing = json_array();
    for (size_t i = 0; i < count; i++)
        if (found[i] ? json_array_append_new(rows, found[i]) != 0
                     : json_array_append_new(missing, json_string(chosen[i]->name)) != 0)
            explored = false;
    if (json_array_size(rows) == 0)
        return ENDED_ENVIRONMENT;
    json_auto_t *document = result_new("explore", settings_json(settings));
    double seconds = (double)(monotonic_us() - began_us) / 1e6;
    if (!document || json_object_set(document, "rows", rows) != 0 ||
        json_object_set_new(document, "seconds", json_real(seconds)) != 0 ||
        json_object_set_new(document, "jobs", json_integer((json_int_t)settings->jobs)) != 0 ||
        json_object_set_new(document, "interrupted", json_boolean(interrupted())) != 0 ||
        json_object_set(document, "missing", missing) != 0) {
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    bool written = output_write(&explore_result, document, &settings->output);
    if (settings->plan.limits.show && strcmp(settings->output.format, "json") != 0)
        print_counterexamples(rows);
    if (settings->save && !save_counterexamples(rows, settings->save))
        written = false;
    int status = result_status(rows, settings->strategies);
    return written && (explored || status == ENDED_BROKEN) ? status : ENDED_ENVIRONMENT;
}

/* ---- replays --------------------------------------------------------------------------------------------------- */

static int write_replays(const struct explore_settings *settings, json_t *results)
{
    json_auto_t *document = result_new("replay", json_object());
    char *text = NULL;
    if (document && json_object_set(document, "replays", results) == 0)
        text = json_dumps(document, JSON_INDENT(2));
    bool written = text && (settings->output.output ? output_file(settings->output.output, text, strlen(text))
                                                    : printf("%s\n", text) > 0);
    free(text);
    return written ? ENDED_AS_EXPECTED : ENDED_ENVIRONMENT;
}

static int replay_in(struct lab *lab, const struct explore_settings *settings,
                     const struct scenario_list *list)
{
    struct lock_config addresses;
    struct product_schema schema;
    int status = ENDED_ENVIRONMENT;
    bool as_json = strcmp(settings->output.format, "json") == 0;
    if (!learn_addresses(lab, settings, &addresses))
        return status;
    lock_configure(&addresses);
    if (!product_schema_open(addresses.database_url, &schema)) {
        complain("postgresql: %s", schema.error);
        return status;
    }
    json_auto_t *results = scenario_list_run(list, &schema, addresses.database_url, as_json ? NULL : stdout,
                                             &status);
    product_schema_close(&schema);
    if (!results || (as_json && write_replays(settings, results) != ENDED_AS_EXPECTED))
        return ENDED_ENVIRONMENT;
    return status;
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static int in_lab(const struct explore_settings *settings, const char *strategies_meant,
                  const struct scenario_list *list)
{
    const struct strategy *chosen[STRATEGIES_MOST];
    struct lab_settings place = {
        .servers = settings->servers, .database = true, .strategies = strategies_meant};
    struct lab lab;
    int status = ENDED_ENVIRONMENT;
    size_t count = list->count ? 0 : choose(strategies_meant, chosen);
    if ((list->count == 0 && count == 0) || !lab_settings_valid(&place))
        return ENDED_USAGE;
    interrupt_watch();
    if (lab_open(&place, &lab)) {
        status = list->count ? replay_in(&lab, settings, list) : explore_in(&lab, settings, chosen, count);
        lab_close(&lab);
    }
    return interrupted() ? 128 + interrupted() : status;
}

static int replay(const struct explore_settings *settings)
{
    struct scenario_list list = {0};
    bool read = true;
    for (size_t i = 0; i < settings->replays.count && read; i++)
        read = scenario_list_add(&list, settings->replays.item[i]);
    char *names = read ? scenario_list_strategies(&list) : NULL;
    int status = names ? in_lab(settings, names, &list) : ENDED_USAGE;
    free(names);
    scenario_list_free(&list);
    return status;
}

/* Was the option given, as "--stock 1" or "--stock=1"? The settings cannot tell, if it was given its default value. */
static bool is_given(int argc, char **argv, const char *option)
{
    size_t length = strlen(option);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], option, length) == 0 && (argv[i][length] == '\0' || argv[i][length] == '='))
            return true;
    return false;
}

int explore_main(int argc, char **argv)
{
    struct explore_settings settings = {
        .strategies = "all",
        .quantities = "1",
        .servers = "private",
        .faults = "none",
        .jobs = sysconf(_SC_NPROCESSORS_ONLN),
        .plan = {.actors = 2, .stock = 1, .limits = {.bound = NO_BOUND, .seed = 1}},
        .output = OUTPUT_DEFAULTS,
    };
    struct texts operands;
    settings.jobs = settings.jobs < 1 ? 1 : settings.jobs > JOBS_MOST ? JOBS_MOST : settings.jobs;
    switch (options_parse(&LINE, argc, argv, &settings, &operands)) {
    case OPTIONS_OK: break;
    case OPTIONS_HELP: return ENDED_AS_EXPECTED;
    case OPTIONS_BAD: return ENDED_USAGE;
    }
    if (!parse_quantities(settings.quantities, settings.plan.quantities) || !output_valid(&settings.output) ||
        !parse_never(settings.never, &settings.plan.never))
        return ENDED_USAGE;
    (void)faults_parse(settings.faults, &settings.plan.faults); /* the option accepts no other names */
    settings.plan.twice = !settings.plan.faults && !is_given(argc, argv, "--actors") &&
                          !is_given(argc, argv, "--stock") && !is_given(argc, argv, "--quantities");
    if (settings.plan.limits.pct && !settings.plan.limits.samples) {
        complain("--pct says how to choose the schedules of --sample N");
        return ENDED_USAGE;
    }
    if (settings.plan.actors > 2 && settings.plan.limits.bound == NO_BOUND)
        settings.plan.limits.bound = DEPTH_MAX; /* the simplest first: there may be too many for all */
    if (settings.serve)
        return serve();
    if (settings.replays.count > 0)
        return replay(&settings);
    return in_lab(&settings, settings.strategies, &(struct scenario_list){0});
}
