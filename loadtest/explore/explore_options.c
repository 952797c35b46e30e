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
     "run N random schedules instead of all"},
    {"--pct", "DEPTH", OPTION_NUMBER, AT(plan.limits.pct), 0, PCT_DEPTH_MAX, NULL,
     "of --sample: not uniform, but by random priorities of the orders that\nchange DEPTH - 1 times: "
     "finds a bug that few steps decide sooner"},
    {"--seed", "S", OPTION_NUMBER, AT(plan.limits.seed), 0, INT64_MAX, NULL, "what --sample begins with"},
    {"--replay", "WHAT", OPTION_TEXTS, AT(replays), 0, 0, NULL,
     "instead: run one schedule and tell it, such as\n"
     "'read-write s=1 q=1,1 A>read B>end A>end', or a file of them\n"
     "(explore/*.sched); repeat it for more"},
    {"--show", "N", OPTION_NUMBER, AT(plan.limits.show), 0, COUNTEREXAMPLES_MAX, NULL,
     "show up to N schedules of each strategy that went wrong, the simplest\nfirst, with a column for each order"},
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
        complain("--pct says how to choose the schedules of --sample N");
        return OPTIONS_BAD;
    }
    if (plan->actors > 2 && plan->limits.bound == NO_BOUND)
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
