/* `loadtest demo`: ten strategies under the same load, each flaw shown, a row at a time: what `make demo` runs. */
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/progress.h"
#include "loadtest/cli/selection.h"
#include "loadtest/cli/terminal.h"
#include "loadtest/command/run_command.h"
#include "loadtest/load/comparison.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of each kind, from no protection to a fencing token. */
static const char TEN[] =
    "read-write,mutex,select-for-update,atomic-decrement,redis-lock,fence-on-write,redis-fenced,redlock,"
    "zookeeper,etcd";

enum { WIDE = 118 /* columns of a terminal that has room for the last column */, CELL = 64 };

struct demo_settings {
    const char *strategies;
    const char *json; /* a file for the result; NULL: none */
    struct comparison comparison;
};

#define AT(member) offsetof(struct demo_settings, member)

static const struct option_row ROWS[] = {
    SELECTION_ROW(AT(strategies)),
    {"--export-json", "FILE", OPTION_TEXT, AT(json), 0, 0, NULL,
     "Write the result to FILE, for loadtest report."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

/* Prints TEXT, and spaces up to WIDTH columns. */
static void print_cell(const char *text, size_t width)
{
    size_t used = display_width(text);
    printf("%s%*s  ", text, (int)(used < width ? width - used : 0), "");
}

static void print_line(const char *strategy, const char *oversold, const char *breaks_when, const char *rate,
                       const char *use)
{
    size_t columns = terminal_width(stdout);
    bool wide = columns == 0 || columns >= WIDE;
    print_cell(strategy, 24);
    print_cell(oversold, 12);
    print_cell(breaks_when, 36);
    printf("%8s%s%s\n", rate, wide ? "  " : "", wide ? use : "");
    (void)fflush(stdout); /* a row is to be seen when it is there, also in a pipe */
}

static void print_row(const json_t *row)
{
    char oversold[CELL], rate[CELL];
    const json_t *shown = json_object_get(row, "shown"), *orders_per_s = json_object_get(row, "orders_per_s");
    enum verdict verdict = result_verdict(row);
    progress_wipe();
    interrupt_shown();
    if (verdict == VERDICT_UNAVAILABLE) {
        print_line(result_text(row, "strategy"), "–", "not tried: its server is missing", "–", "");
        return;
    }
    if (result_number(row, "oversold") > 0)
        snprintf(oversold, sizeof oversold, "✗ %" PRId64 " of %" PRId64, result_number(row, "oversold"),
                 result_number(row, "stock"));
    else
        snprintf(oversold, sizeof oversold, "no");
    snprintf(rate, sizeof rate, json_is_number(orders_per_s) ? "%.0f" : "–", json_number_value(orders_per_s));
    print_line(result_text(row, "strategy"), oversold,
               json_is_object(shown)    ? result_text(shown, "breaks_when")
               : verdict == VERDICT_OK  ? "✓ not seen; all writers must use it"
               : verdict_fails(verdict) ? "not as expected, see below"
                                        : "–",
               rate, result_text(json_object_get(row, "cells"), "use_for"));
}

/* The first schedule that showed a flaw. */
static void print_schedule(const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        const json_t *shown = json_object_get(row, "shown");
        if (!json_is_string(json_object_get(shown, "told")))
            continue;
        printf("\nHow %s fails, step by step:\n\n%s\n%s\n", result_text(row, "strategy"),
               result_text(shown, "told"), result_text(shown, "explanation"));
        return;
    }
}

static void print_failures(const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (verdict_fails(result_verdict(row)))
            printf("\n%s: %s. %s\n", result_text(row, "strategy"), verdict_name(result_verdict(row)),
                   result_text(row, "finding"));
        else if (result_verdict(row) == VERDICT_UNAVAILABLE)
            printf("\n%s was not tried: %s\n", result_text(row, "strategy"), result_text(row, "reason"));
    }
}

static int demo_begin(void *context, const struct texts *operands)
{
    struct demo_settings *settings = context;
    (void)operands;
    if (!comparison_settle(&settings->comparison) || (settings->json && !output_file_valid(settings->json)))
        return ENDED_USAGE;
    settings->comparison.testbed.strategies = settings->strategies;
    return COMMAND_GOES_ON;
}

static int write_json(const struct demo_settings *settings, struct testbed *testbed, const json_t *strategies,
                      json_t *rows)
{
    json_auto_t *document = result_new("compare",
                                       comparison_settings(&settings->comparison, testbed, strategies));
    char *text = document && json_object_set(document, "rows", rows) == 0
                     ? json_dumps(document, JSON_INDENT(2))
                     : NULL;
    bool written = text && output_file(settings->json, text, strlen(text));
    free(text);
    return written ? ENDED_AS_EXPECTED : ENDED_ENVIRONMENT;
}

static int demo_run(struct testbed *testbed, const json_t *strategies, void *context)
{
    const struct demo_settings *settings = context;
    const struct plan *plan = &settings->comparison.plan;
    printf("\n%" PRId64 " orders for %" PRId64 " units, over %" PRId64
           " connections to %zu services. Oversold: units sold"
           " beyond the stock of %" PRId64 ".\n\n",
           plan_requests(plan), plan->stock, plan->connections, testbed->count, plan->stock);
    print_line("strategy", "oversold", "breaks when", "orders/s", "use it for");
    json_auto_t *rows = comparison_run(&settings->comparison, testbed, strategies);
    if (!rows || (settings->json && write_json(settings, testbed, strategies, rows) != ENDED_AS_EXPECTED))
        return ENDED_ENVIRONMENT;
    print_failures(rows);
    print_schedule(rows);
    if (interrupted())
        fputs("\nInterrupted: this covers only what had run.\n", stdout);
    fputs(
        "\nNext steps:\n"
        "  build/loadtest explore --strategies read-write --show 1   run every schedule of two orders\n"
        "  make run                                                  open the page, and step through a schedule\n"
        "  make demo-all                                             run all strategies\n",
        stdout);
    /* A server that is missing is an error only if the command line names a strategy that needs it. */
    return result_status(rows, settings->strategies == TEN ? "all" : settings->strategies);
}

static const struct command COMMAND = {
    .line =
        {
            .name = "demo",
            .operands = "",
            .summary =
                "Shows how ten strategies protect stock, and how each unsafe one fails.\n"
                "\n"
                "The command sells a product out under each strategy and prints one row at a time. An "
                "unsafe strategy may survive the load. Then the command runs a schedule with the event "
                "that breaks it, such as an expired lease. It starts a private database, lock servers and "
                "two services, and stops them on exit.",
            .example = "loadtest demo --strategies read-write,mutex,redis-lock",
            .groups = {{&OPTIONS, 0},
                       {&testbed_options, AT(comparison.testbed)},
                       {&comparison_options, AT(comparison)}},
        },
    .begin = demo_begin,
    .run = demo_run,
    .testbed = AT(comparison.testbed),
};

int demo_main(int argc, char **argv)
{
    struct demo_settings settings = {.strategies = TEN, .comparison = comparison_defaults(2)};
    settings.comparison.shows_flaws = true;
    settings.comparison.on_row = print_row;
    return run_command(&COMMAND, argc, argv, &settings);
}
