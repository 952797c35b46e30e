/* The load test: finds oversells, measures what each strategy costs, and prints what it found. */
#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "service/engine/strategy_validate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *does;
} COMMANDS[] = {
    {"compare", compare_main, "find oversells by load: every strategy's promise, and what it costs"},
    {"demo", demo_main, "ten strategies, each flaw shown: what make demo runs"},
    {"explore", explore_main, "find oversells by schedule: every interleaving of a few orders"},
    {"rush", rush_main, "a sale by schedule: the delay that buyers see when a strategy falls behind"},
    {"faults", faults_main, "find losses by breaking things: processes, servers, networks, clocks"},
    {"contend", contend_main, "one contender of the lock test, which faults starts"},
    {"soak", soak_main, "a long sale: does the service grow, and do the books balance to the end"},
    {"diff", diff_main, "two strategies side by side: what differs, and what it leads to"},
    {"report", report_main, "print a stored result again, in any format"},
    {"bench", bench_main, "how far the service is from its limits, as ratios"},
};

#define COMMAND_COUNT (sizeof COMMANDS / sizeof COMMANDS[0])

static void print_usage(FILE *out)
{
    fputs("usage: loadtest COMMAND [OPTION…]\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-10s%s\n", COMMANDS[i].name, COMMANDS[i].does);
    fputs("\nloadtest COMMAND --help tells more. Exit status: 0 all as expected, 1 a promise was broken,\n"
          "2 wrong usage, 3 the environment (a server or a tool is missing or has died).\n",
          out);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return ENDED_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return ENDED_AS_EXPECTED;
    }
    char error[400];
    if (!strategies_validate(error, sizeof error)) {
        complain("%s", error);
        return ENDED_USAGE;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(argv[1], COMMANDS[i].name) == 0)
            return COMMANDS[i].run(argc - 1, argv + 1);

    fprintf(stderr, "loadtest: unknown command '%s' (valid:", argv[1]);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(stderr, " %s", COMMANDS[i].name);
    fputs(")\n", stderr);
    return ENDED_USAGE;
}
