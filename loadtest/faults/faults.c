/* `loadtest faults`: injects faults while clients order, and compares the answers that clients got with the database. */
#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/plain_text.h"
#include "loadtest/cli/selection.h"
#include "loadtest/command/chosen_strategies.h"
#include "loadtest/command/run_command.h"
#include "loadtest/faults/fault.h"
#include "loadtest/faults/row.h"
#include "loadtest/report/result.h"
#include "loadtest/testbed/servers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MORE_CHANCES 5
/* Each fault has its own products, so that a lock that it left stuck does not block the next one. */
#define PRODUCTS_OF_A_FAULT 1000

_Static_assert((int)STRATEGIES_MAX <= (int)FAULT_STRATEGIES_MAX, "there is room for every strategy");

struct faults_settings {
    const char *faults;
    const char *strategies;
    int64_t cycles;  /* 0: each fault's own number */
    int64_t time_ms; /* 0: as long as it takes */
    int64_t seed;
    struct output_settings output;
    char servers[4096]; /* strategies whose servers are started, with commas between */
};

#define AT(member) offsetof(struct faults_settings, member)

static const struct option_row ROWS[] = {
    {"--faults", "LIST", OPTION_TEXT, AT(faults), 0, 0, NULL,
     "Faults to inject: names separated by commas, or all. --faults help prints the list."},
    SELECTION_ROW(AT(strategies)),
    {"--cycles", "N", OPTION_NUMBER, AT(cycles), 0, 1000000, NULL,
     "How often to inject each fault. 0: as often as the fault needs."},
    {"--time", "T", OPTION_DURATION, AT(time_ms), 0, 86400000, NULL,
     "Start no cycle of a fault later than this after its first cycle. 0: no limit."},
    {"--seed", "N", OPTION_NUMBER, AT(seed), 0, INT64_MAX, NULL,
     "Seed of the random choices. The same seed chooses the same victims and pauses."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

/* ---- which faults -------------------------------------------------------------------------------------- */

static void print_faults(FILE *out)
{
    for (size_t i = 0; i < fault_count; i++)
        fprintf(out, "  %-20s %s\n", faults[i].name, faults[i].does);
}

/* Every word of the list is a fault's name. */
static bool faults_valid(const char *list)
{
    const char *word;
    size_t length, i;
    while (selection_next(&list, &word, &length)) {
        for (i = 0; i < fault_count && !selection_word_means(word, length, faults[i].name, NULL);)
            i++;
        if (i == fault_count) {
            plain_print(stderr, "loadtest: unknown fault '%.*s' (valid: all, or a name of this list):\n",
                        (int)length, word);
            print_faults(stderr);
            return false;
        }
    }
    return true;
}

/* The strategies whose servers are started: those that are tried, and those whose servers a fault needs. */
static bool name_servers(const struct faults_settings *settings, char *ret_list, size_t size)
{
    size_t used = (size_t)snprintf(ret_list, size, "%s", settings->strategies);
    for (size_t i = 0; i < fault_count && used < size; i++)
        if (faults[i].servers_of && selection_means(settings->faults, faults[i].name, NULL))
            used += (size_t)snprintf(ret_list + used, size - used, ",%s", faults[i].servers_of);
    if (used >= size)
        complain("--strategies is too long: use a group such as all");
    return used < size;
}

/* ---- running ------------------------------------------------------------------------------------------- */

static fault_step *const CYCLES[] = {
    [CYCLE_LOAD] = fault_load, [CYCLE_OVERTAKE] = fault_overtake, [CYCLE_LOCK_TEST] = fault_lock_test};

static bool proxies_have_acted(const struct fault_run *run)
{
    return (run->targets & ~fault_proxies_acted(run->testbed)) == 0;
}

/* A flaw shows only if the fault happens at the right moment, so a run may take up to MORE_CHANCES times its cycles. */
static bool goes_on(const struct fault_run *run)
{
    bool shown = proxies_have_acted(run) && !fault_still_to_be_seen(run, SEEN_ANY);
    for (size_t i = 0; i < run->count; i++)
        shown &= !fault_awaits_outage(&run->subjects[i]) && !fault_awaits_meeting(&run->subjects[i]);
    return run->cycle < (shown ? run->cycles : run->cycles * MORE_CHANCES);
}

/* Runs the cycles of one group of strategies. */
static bool run_cycles(const struct faults_settings *settings, struct fault_run *run)
{
    run->cycles = settings->cycles > 0 ? settings->cycles : run->fault->cycles;
    int64_t end_us = settings->time_ms > 0 ? monotonic_us() + settings->time_ms * 1000 : INT64_MAX;
    if (run->fault->cycle != CYCLE_LOCK_TEST && !fault_warm_up(run))
        return false;
    for (run->cycle = 0; goes_on(run) && monotonic_us() < end_us; run->cycle++) {
        run->seed = (uint64_t)settings->seed * 1000003 + (uint64_t)(run->fault - faults) * 10007 +
                    (uint64_t)run->cycle * 131;
        run->random = random_from(run->seed);
        fault_show_progress(run);
        if (!CYCLES[run->fault->cycle](run))
            return false;
    }
    if (!proxies_have_acted(run))
        complain("%s: a proxy did nothing in %" PRId64
                 " cycles, so the result is not valid: use more --cycles",
                 run->fault->name, run->cycle);
    return proxies_have_acted(run);
}

static int64_t first_product(const struct fault *fault)
{
    return (fault - faults + 1) * PRODUCTS_OF_A_FAULT;
}

/* The strategies to try under the fault. ALONE: those whose orders lock out all other strategies; else all the others. */
static size_t choose(const struct faults_settings *settings, const struct fault *fault,
                     struct fault_testbed *testbed, bool alone, struct fault_subject *ret_subjects,
                     char reasons[][200])
{
    size_t count = 0;
    for (size_t i = 0; i < strategy_count; i++) {
        const struct strategy *strategy = &strategies[i];
        unsigned expected = fault_expected(fault, strategy);
        bool thinks = fault->cycle == CYCLE_OVERTAKE || fault->think_ms > 0;
        bool holds_up = thinks && strategy->take_stock->locks_all;
        if (!expected || holds_up != alone ||
            !selection_means(settings->strategies, strategy->name, guarantee_name(strategy->guarantee)))
            continue;
        struct fault_subject *subject = &ret_subjects[count];
        *subject = (struct fault_subject){
            .strategy = strategy, .expected = expected, .product = first_product(fault) + (int64_t)count};
        const struct lock_server *server = strategy_server(strategy);
        if (server && !server_is_up(&testbed->base, server, reasons[count], sizeof reasons[count]))
            subject->reason = reasons[count];
        count++;
    }
    return count;
}

/* Moves those that can be tried to the front, and counts them in *RET_TRIED. */
static void order_by_reason(struct fault_subject *subjects, size_t count, int64_t first_product,
                            size_t *ret_tried)
{
    size_t tried = 0;
    for (size_t i = 0; i < count; i++) {
        if (subjects[i].reason)
            continue;
        struct fault_subject subject = subjects[i];
        memmove(&subjects[tried + 1], &subjects[tried], (i - tried) * sizeof subjects[0]);
        subjects[tried] = subject;
        subjects[tried].product = first_product + (int64_t)tried;
        tried++;
    }
    *ret_tried = tried;
}

/* The figures of a fault whose cycles an interrupt ended: they are no row, because a flaw may not have had its chance. */
static void say_how_far(const struct fault_run *run)
{
    int64_t lost = 0;
    for (size_t i = 0; i < run->count; i++)
        lost += run->subjects[i].counts.lost;
    progress_wipe();
    complain("%s was interrupted in cycle %" PRId64 " of %" PRId64 ": %zu orders, %" PRId64 " lost so far",
             run->fault->name, run->cycle + 1, run->cycles, fault_history_size(run->history), lost);
}

static bool try_group(const struct faults_settings *settings, const struct fault *fault,
                      struct fault_testbed *testbed, bool alone, struct progress *progress, json_t *rows)
{
    struct fault_subject subjects[FAULT_STRATEGIES_MAX + 1];
    char reasons[FAULT_STRATEGIES_MAX][200], reason[200], tag[40];
    size_t tried, count = choose(settings, fault, testbed, alone, subjects, reasons);
    order_by_reason(subjects, count, first_product(fault), &tried);
    struct shim_environment ignored;
    if (fault->shim && !shim_prepare(&testbed->base, fault->shim, "", &ignored, reason, sizeof reason)) {
        for (size_t i = 0; i < tried; i++)
            subjects[i].reason = reason;
        tried = 0;
    }
    struct fault_history history;
    snprintf(tag, sizeof tag, "f%" PRId64 "-%zu%s", settings->seed, (size_t)(fault - faults),
             alone ? "a" : "");
    fault_history_open(tag, &history);
    struct fault_run run = {.fault = fault,
                            .testbed = testbed,
                            .history = &history,
                            .subjects = subjects,
                            .count = tried,
                            .progress = progress};
    bool ok = tried == 0 || ((!fault->enter || fault->enter(&run)) && run_cycles(settings, &run));
    if (tried > 0 && interrupted())
        say_how_far(&run);
    if (tried > 0 && fault->leave && !fault->leave(&run))
        ok = false;
    for (size_t i = 0; ok && i < count; i++)
        ok = json_array_append_new(rows, fault_row_new(&run, &subjects[i])) == 0;
    fault_history_close(&history);
    return ok;
}

static bool try_fault(const struct faults_settings *settings, const struct fault *fault,
                      struct fault_testbed *testbed, struct progress *progress, json_t *rows, json_t *told)
{
    const struct fault_testbed_plan plan = {.ttl_ms = fault->ttl_ms,
                                            .wait_ms = fault->cycle == CYCLE_LOAD ? FAULT_LOCK_WAIT_MS
                                                                                  : 30000,
                                            .order_ms = fault->cycle == CYCLE_LOAD ? 10000 : 60000,
                                            .proxied = fault->proxied,
                                            .proxied_one = fault->proxied_one,
                                            .clocks = fault->clocks};
    progress_label(progress, "%s", fault->name);
    if (!fault_testbed_arrange(testbed, &plan) ||
        !try_group(settings, fault, testbed, false, progress, rows) ||
        !try_group(settings, fault, testbed, true, progress, rows))
        return false;
    progress_step_done(progress);
    return json_array_append_new(told, json_pack("{s:s, s:s}", "name", fault->name, "does", fault->does)) ==
           0;
}

static int faults_in(struct fault_testbed *testbed, const struct faults_settings *settings)
{
    json_auto_t *rows = json_array();
    json_auto_t *told = json_array();
    size_t wanted = 0;
    for (size_t i = 0; i < fault_count; i++)
        wanted += selection_means(settings->faults, faults[i].name, NULL);
    struct progress progress = progress_begin(wanted);
    bool ok = true;
    for (size_t i = 0; ok && i < fault_count; i++)
        if (selection_means(settings->faults, faults[i].name, NULL))
            ok = try_fault(settings, &faults[i], testbed, &progress, rows, told);
    progress_wipe();
    json_auto_t *document = result_new(
        "faults", json_pack("{s:s, s:s, s:I, s:I, s:I}", "faults", settings->faults, "strategies",
                            settings->strategies, "cycles", (json_int_t)settings->cycles, "time_ms",
                            (json_int_t)settings->time_ms, "seed", (json_int_t)settings->seed));
    if (!document || json_object_set(document, "faults", told) != 0 ||
        json_object_set(document, "rows", rows) != 0) {
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    if (ok && json_array_size(rows) == 0)
        complain("no fault of '%s' is tried with a strategy of '%s': see docs/reliability.md",
                 settings->faults, settings->strategies);
    /* The rows of a run that was interrupted may have taken hours. */
    bool written = json_array_size(rows) == 0 || output_write(&faults_result, document, &settings->output);
    return ok && written ? result_status(rows, settings->strategies) : ENDED_ENVIRONMENT;
}

static int faults_begin(void *context, const struct texts *operands)
{
    struct faults_settings *settings = context;
    (void)operands;
    if (strcmp(settings->faults, "help") == 0) {
        print_faults(stdout);
        return ENDED_AS_EXPECTED;
    }
    const struct strategy *chosen[STRATEGIES_MAX];
    bool valid = faults_valid(settings->faults) && chosen_strategies(settings->strategies, chosen) > 0 &&
                 name_servers(settings, settings->servers, sizeof settings->servers) &&
                 output_valid(&settings->output);
    return valid ? COMMAND_GOES_ON : ENDED_USAGE;
}

static int faults_run(void *context)
{
    const struct faults_settings *settings = context;
    struct fault_testbed testbed;
    if (!fault_testbed_open(settings->servers, &testbed))
        return ENDED_ENVIRONMENT;
    int status = faults_in(&testbed, settings);
    fault_testbed_close(&testbed);
    return status;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "faults",
            .operands = "",
            .summary =
                "Finds lost and duplicate orders by injecting faults into processes, servers, networks "
                "and clocks.\n"
                "\n"
                "Each client records its order before it sends it, and the answer after it. Then the "
                "command compares this history with the database. Each strategy must keep its guarantee "
                "under each fault. If a strategy has no such guarantee, the fault must show the loss. The "
                "command starts private servers and two services, and stops them on exit.",
            .example = "loadtest faults --faults kill --strategies redis-lock --cycles 20",
            .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
        },
    .begin = faults_begin,
    .run_alone = faults_run,
};

int faults_main(int argc, char **argv)
{
    struct faults_settings settings = {
        .faults = "all", .strategies = "all", .seed = 1, .output = OUTPUT_DEFAULTS};
    return run_command(&COMMAND, argc, argv, &settings);
}
