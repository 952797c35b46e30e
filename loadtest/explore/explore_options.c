/* Reads the options of `loadtest explore`, and writes the settings into its result. */
#include "loadtest/explore/explore_options.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/selection.h"
#include "loadtest/explore/spec/scenario.h"
#include "loadtest/json/members.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STOCK_MOST = 1000, JOBS_MOST = 16 };

#define AT(member) offsetof(struct explore_settings, member)

static const char *const FAULT_CHOICES[] = {"none", "crash", "expire", "timeout", NULL};
static const char *const SERVER_CHOICES[] = {"private", "environment", NULL};

static const struct option_row RUN_ROWS[] = {
    SELECTION_ROW(AT(strategies)),
    {"--actors", "N", OPTION_NUMBER, AT(plan.actors), 1, ACTORS_MAX, NULL, "Concurrent orders."},
    {"--stock", "S", OPTION_NUMBER, AT(plan.stock), 0, STOCK_MOST, NULL, "Units in stock at the start."},
    {"--quantities", "LIST", OPTION_TEXT, AT(quantities), 0, 0, NULL,
     "Units of each order, separated by commas. The last number also applies to all further orders."},
    {"--faults", "WHICH", OPTION_CHOICE, AT(faults), 0, 0, FAULT_CHOICES,
     "A fault that occurs once in each schedule, at any point.\n"
     "expire: the lease, session or connection of an order's lock ends.\n"
     "crash: an order dies; if its lock is in memory, all orders of its process die.\n"
     "timeout: an order stops waiting for another order."},
    {"--never", "LIST", OPTION_TEXT, AT(never), 0, 0, NULL,
     "Fail if one of these occurs, whatever the strategy guarantees. Separate them by commas: oversold, "
     "drift, undersold, waited, deadlock, stuck, robbed, two-holders, failed, answers-wrong, "
     "false-refusal, leaked."},
    {"--servers", "WHICH", OPTION_CHOICE, AT(servers), 0, 0, SERVER_CHOICES,
     "Database and lock servers. private: the command starts them. environment: those in DATABASE_URL, "
     "REDIS_URL, REDLOCK_URLS, ZOOKEEPER_CONNECT and ETCD_ENDPOINTS."},
    {"--replay", "WHAT", OPTION_TEXTS, AT(replays), 0, 0, NULL,
     "Run one schedule and explain it, instead of a search. WHAT is a schedule, such as "
     "'read-write s=1 q=1,1 A>read B>end A>end', or a file (schedules/*.sched). The option may be repeated."},
    {"--sent", NULL, OPTION_FLAG, AT(sent), 0, 0, NULL,
     "With --replay: also print each statement or command that an order sends, its values and the answer."},
    {"--serve", NULL, OPTION_FLAG, AT(serve), 0, 0, NULL,
     "Answer each line of stdin with a line of JSON, instead of a search. The service's page uses this."},
};

static const char *const REDUCTIONS[] = {"steps", "none", NULL};

static const struct option_row LIMIT_ROWS[] = {
    {"--limit", "N", OPTION_NUMBER, AT(plan.limits.schedules), 0, INT32_MAX, NULL,
     "Run at most N schedules of each strategy. 0: all."},
    {"--time", "TIME", OPTION_DURATION, AT(plan.limits.time_ms), 0, 86400000, NULL,
     "Search each strategy for at most this long. 0: no limit."},
    {"--bound", "N", OPTION_NUMBER, AT(plan.limits.bound), 0, DEPTH_MAX, NULL,
     "Run only schedules with at most N preemptions: switches from an order that could continue. "
     "Schedules with fewer preemptions come first. Without this option, a search of three or more "
     "orders with --reduce none raises N step by step."},
    {"--reduce", "HOW", OPTION_CHOICE, AT(reduce), 0, 0, REDUCTIONS,
     "steps: run one of the schedules that differ only in the sequence of steps which do not affect each other. It counts for all of them. "
     "none: run all. With --bound and --sample, all that are chosen run."},
    {"--sample", "N", OPTION_NUMBER, AT(plan.limits.samples), 0, INT32_MAX, NULL,
     "Run N random schedules instead of all."},
    {"--pct", "DEPTH", OPTION_NUMBER, AT(plan.limits.pct), 0, PCT_DEPTH_MAX, NULL,
     "With --sample: give each order a random priority, and change priorities DEPTH - 1 times. This finds "
     "bugs that depend on few steps sooner."},
    {"--seed", "S", OPTION_NUMBER, AT(plan.limits.seed), 0, INT64_MAX, NULL, "Seed of the random schedules."},
    {"--jobs", "N", OPTION_NUMBER, AT(jobs), 1, JOBS_MOST, NULL, "Processes that search in parallel."},
    {"--checkpoint", "DIR", OPTION_TEXT, AT(plan.checkpoints), 0, 0, NULL,
     "Save the progress of each search in DIR, and continue from there in the next run. --limit and --time "
     "then apply to one run."},
};

static const struct option_row SHOW_ROWS[] = {
    {"--show", "N", OPTION_NUMBER, AT(plan.limits.show), 0, COUNTEREXAMPLES_MAX, NULL,
     "Print up to N counterexamples of each strategy, the simplest first, with a column for each order."},
    {"--save", "DIR", OPTION_TEXT, AT(save), 0, 0, NULL,
     "Write each counterexample to a file in DIR, for --replay. The file has the result as its expectation."},
};

static const struct option_rows RUN_OPTIONS = OPTION_ROWS("What to run", RUN_ROWS),
                                LIMIT_OPTIONS = OPTION_ROWS("Search", LIMIT_ROWS),
                                SHOW_OPTIONS = OPTION_ROWS("Counterexamples", SHOW_ROWS);

static const struct command_line LINE = {
    .name = "explore",
    .operands = "",
    .summary =
        "Finds oversells by running every interleaving of a few concurrent orders.\n\n"
        "Each interleaving is a schedule. It runs the service's own code on real servers, one step at a time, "
        "and then audits the database. A strategy passes if no schedule oversells, rejects an order wrongly, "
        "or leaves a lock behind. The share of bad schedules is the same in every run.\n\n"
        "By default, each strategy is searched three times: two orders of one unit with a stock of one; then "
        "two orders of two units with a stock of three, where one wait of each schedule may time out; then "
        "two orders of one unit with a stock of two, so that none may be refused. A fair lock is also searched with three orders, so that its "
        "queue has two waiters. --actors, --stock, --quantities or --faults replace all of them by one search.\n\n"
        "loadtest explore shop.json tests your own service, and loadtest explore FILE.spec runs your own SQL: see "
        "loadtest explore shop.json --help and loadtest explore x.spec --help.\n\n"
        "Exit status: 0 all results are as expected, or a limit left schedules out (verdict: unknown), 1 a "
        "guarantee was broken or a flaw not shown, 3 a search failed, 128 and more: interrupted. The command "
        "always prints the finished rows.",
    .example = "loadtest explore --strategies read-write --show 1",
    .groups = {{&RUN_OPTIONS, 0}, {&LIMIT_OPTIONS, 0}, {&SHOW_OPTIONS, 0}, {&output_options, AT(output)}},
};

static bool parse_quantities(const char *list, int64_t *ret_quantities)
{
    int64_t last = 0;
    const char *rest = list;
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        char word[16];
        size_t length = rest ? strcspn(rest, ",") : 0;
        snprintf(word, sizeof word, "%.*s", (int)length, rest ? rest : "");
        if (rest && (length >= sizeof word || !parse_number(word, &last) || last < 1 || last > STOCK_MOST)) {
            complain("--quantities '%s' is not valid (valid: numbers from 1 to %d, separated by commas)",
                     list, STOCK_MOST);
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

/* Was the option given, as "--stock 1" or "--stock=1"? The settings cannot tell, if it was given its default value. */
static bool is_given(int argc, char **argv, const char *option)
{
    size_t length = strlen(option);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], option, length) == 0 && (argv[i][length] == '\0' || argv[i][length] == '='))
            return true;
    return false;
}

enum options_outcome explore_options_parse(int argc, char **argv, struct explore_settings *ret_settings)
{
    struct explore_plan *plan = &ret_settings->plan;
    struct texts operands;
    *ret_settings = (struct explore_settings){
        .strategies = "all",
        .quantities = "1",
        .servers = "private",
        .faults = "none",
        .reduce = "steps",
        .jobs = sysconf(_SC_NPROCESSORS_ONLN),
        .plan = {.actors = 2, .stock = 1, .limits = {.bound = NO_BOUND, .seed = 1}},
        .output = OUTPUT_DEFAULTS,
    };
    int64_t jobs = ret_settings->jobs;
    ret_settings->jobs = jobs < 1 ? 1 : jobs > JOBS_MOST ? JOBS_MOST : jobs;
    enum options_outcome status = options_parse(&LINE, argc, argv, ret_settings, &operands);
    if (status != OPTIONS_OK)
        return status;
    if (!parse_quantities(ret_settings->quantities, plan->quantities) ||
        !output_valid(&ret_settings->output) || !parse_never(ret_settings->never, &plan->never))
        return OPTIONS_BAD;
    (void)faults_parse(ret_settings->faults, &plan->faults); /* the option accepts no other names */
    plan->twice = !plan->faults && !is_given(argc, argv, "--actors") && !is_given(argc, argv, "--stock") &&
                  !is_given(argc, argv, "--quantities");
    if (plan->limits.pct && !plan->limits.samples) {
        complain("--pct needs --sample: it only chooses the schedules of a sample");
        return OPTIONS_BAD;
    }
    if (ret_settings->sent && ret_settings->replays.count == 0) {
        complain("--sent needs --replay: a search runs too many schedules to print what they send");
        return OPTIONS_BAD;
    }
    plan->limits.reduces = strcmp(ret_settings->reduce, "none") != 0;
    if (plan->actors > 2 && plan->limits.bound == NO_BOUND && !plan->limits.reduces)
        plan->limits.bound = DEPTH_MAX; /* the simplest first: there may be too many for all */
    return OPTIONS_OK;
}

#define MEMBER(name, member) JSON_MEMBER(name, struct explore_settings, member, false)

static const struct json_member MEMBERS[] = {
    MEMBER("strategies", strategies),
    MEMBER("actors", plan.actors),
    MEMBER("stock", plan.stock),
    MEMBER("quantities", quantities),
    MEMBER("faults", faults),
    MEMBER("reduce", reduce),
    MEMBER("never", never),
    MEMBER("limit", plan.limits.schedules),
    MEMBER("time_ms", plan.limits.time_ms),
    MEMBER("bound", plan.limits.bound),
    MEMBER("sample", plan.limits.samples),
    MEMBER("pct", plan.limits.pct),
    MEMBER("seed", plan.limits.seed),
    MEMBER("larger_orders", plan.twice),
};

json_t *explore_settings_json(const struct explore_settings *settings)
{
    static const struct json_members TABLE = JSON_MEMBERS(MEMBERS);
    json_t *object = members_pack(&TABLE, settings);
    if (object && settings->plan.limits.bound == NO_BOUND)
        (void)json_object_set_new(object, "bound", json_null());
    return object;
}
