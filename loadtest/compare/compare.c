/* `loadtest compare`: every strategy under the same load, its promise checked, its price measured. */
#include "loadtest/cli/plain_text.h"
#include "loadtest/cli/selection.h"
#include "loadtest/command/run_command.h"
#include "loadtest/compare/compare_result.h"
#include "loadtest/load/comparison.h"
#include "loadtest/report/events.h"
#include "loadtest/report/traces.h"

#include <stdio.h>
#include <string.h>

struct compare_settings {
    const char *strategies;
    const char *phases;
    const char *trace_out; /* NULL: none */
    const char *progress;
    const char *show_flaws; /* "yes" or "no" */
    struct comparison comparison;
    struct output_settings output;
};

#define AT(member) offsetof(struct compare_settings, member)

static const char *const PROGRESS_CHOICES[] = {"bar", "json", NULL};
static const char *const FLAWS_CHOICES[] = {"yes", "no", NULL};

static const struct option_row ROWS[] = {
    SELECTION_ROW(AT(strategies)),
    {"--phases", "LIST", OPTION_TEXT, AT(phases), 0, 0, NULL,
     "Phases of each strategy, in this order: sell-out, throughput, or both separated by a comma."},
    {"--show-flaws", "WHICH", OPTION_CHOICE, AT(show_flaws), 0, 0, FLAWS_CHOICES,
     "Break an unsafe strategy that survives the load: run schedules with an event such as an expired lease."},
    {"--trace-out", "FILE", OPTION_TEXT, AT(trace_out), 0, 0, NULL,
     "Write the steps of the last orders as a trace file, which the website ui.perfetto.dev displays."},
    {"--progress", "HOW", OPTION_CHOICE, AT(progress), 0, 0, PROGRESS_CHOICES,
     "How to show progress on stderr: a bar if stderr is a terminal, or one JSON object per line."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

static bool parse_phases(const char *list, struct plan *plan)
{
    plan->sell_out = strcmp(list, "throughput") != 0;
    plan->throughput = strcmp(list, "sell-out") != 0;
    plan->sell_out_last = strcmp(list, "throughput,sell-out") == 0;
    static const char *const VALID[] = {"sell-out,throughput", "throughput,sell-out", "sell-out",
                                        "throughput"};
    for (size_t i = 0; i < sizeof VALID / sizeof VALID[0]; i++)
        if (strcmp(list, VALID[i]) == 0)
            return true;
    plain_print(
        stderr,
        "loadtest compare: --phases '%s' is not valid (valid: sell-out; throughput; sell-out,throughput; throughput,sell-out)\n",
        list);
    return false;
}

static int compare_begin(void *context, const struct texts *operands)
{
    struct compare_settings *settings = context;
    (void)operands;
    if (!parse_phases(settings->phases, &settings->comparison.plan) ||
        !comparison_settle(&settings->comparison) || !output_valid(&settings->output) ||
        (settings->trace_out && !output_file_valid(settings->trace_out)))
        return ENDED_USAGE;
    settings->comparison.testbed.strategies = settings->strategies;
    settings->comparison.shows_flaws = strcmp(settings->show_flaws, "yes") == 0;
    if (strcmp(settings->progress, "json") == 0)
        events_begin();
    return COMMAND_GOES_ON;
}

static int compare_run(struct testbed *testbed, const json_t *strategies, void *context)
{
    const struct compare_settings *settings = context;
    json_auto_t *rows = comparison_run(&settings->comparison, testbed, strategies);
    if (!rows || (settings->trace_out && !traces_write(testbed, settings->trace_out)))
        return ENDED_ENVIRONMENT;
    return command_result(&compare_result, comparison_settings(&settings->comparison, testbed, strategies),
                          rows, settings->strategies, &settings->output);
}

static const struct command COMMAND = {
    .line =
        {
            .name = "compare",
            .operands = "",
            .summary =
                "Finds out by load which strategies oversell, and measures how fast each one is.\n"
                "\n"
                "For each strategy, the command sells out a small stock. Then it measures the throughput "
                "with a stock that cannot run out. After each phase it audits the database: units sold, "
                "units left, and whether the orders are those that the service acknowledged. Without "
                "--url, it starts a private database and services, and stops them on exit.",
            .example = "loadtest compare --strategies read-write,select-for-update",
            .groups = {{&OPTIONS, 0},
                       {&testbed_options, AT(comparison.testbed)},
                       {&comparison_options, AT(comparison)},
                       {&output_options, AT(output)}},
        },
    .begin = compare_begin,
    .run = compare_run,
    .testbed = AT(comparison.testbed),
};

int compare_main(int argc, char **argv)
{
    struct compare_settings settings = {
        .strategies = "all",
        .phases = "sell-out,throughput",
        .progress = "bar",
        .show_flaws = "yes",
        .comparison = comparison_defaults(2),
        .output = OUTPUT_DEFAULTS,
    };
    return run_command(&COMMAND, argc, argv, &settings);
}
