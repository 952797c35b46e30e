/* The load test: finds oversells, measures what each strategy costs, and prints what it found. */
#include "base/text.h"
#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/plain_text.h"
#include "service/engine/strategy_validate.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *does;
} COMMANDS[] = {
    {"compare", compare_main, "find oversells by load, and measure how fast each strategy is"},
    {"demo", demo_main, "show how ten strategies protect stock, and how the unsafe ones fail"},
    {"explore", explore_main, "find oversells by running every interleaving of a few orders"},
    {"check", check_main, "test under load whether your own service oversells"},
    {"init", init_main, "write an example shop.json, which describes your own service"},
    {"rush", rush_main, "measure latency while orders arrive at a fixed rate (an open loop)"},
    {"faults", faults_main, "find lost orders by breaking processes, servers, networks and clocks"},
    {"contend", contend_main, "one client of the lock test (faults starts it)"},
    {"soak", soak_main, "find leaks and lost orders in millions of orders"},
    {"diff", diff_main, "compare two strategies: how they differ, and the result of each"},
    {"report", report_main, "print a stored result again, in any format, or compare several"},
};

#define COMMAND_COUNT (sizeof COMMANDS / sizeof COMMANDS[0])

static void print_usage(FILE *out)
{
    fputs("usage: loadtest COMMAND [OPTION…]\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-10s%s\n", COMMANDS[i].name, COMMANDS[i].does);
    fputs("\nExample: loadtest compare --strategies read-write,select-for-update\n"
          "The options of a command: loadtest COMMAND --help\n\n"
          "Exit status: 0 all results are as expected, 1 a guarantee was broken or a flaw not shown,\n"
          "2 wrong usage, 3 the environment failed: a server or a tool is missing or has died.\n",
          out);
}

/* Is the next word the value of WORD? */
static bool takes_word(const char *word)
{
    /* Of all three commands of `explore`. */
    static const char *const FLAGS[] = {"--", "--all", "--frees", "--help", "--sent", "--serve"};
    for (size_t i = 0; i < sizeof FLAGS / sizeof FLAGS[0]; i++)
        if (strcmp(word, FLAGS[i]) == 0)
            return false;
    return strncmp(word, "--", 2) == 0 && !strchr(word, '=');
}

/* Does a word end with END? One behind an option belongs to that, unless BEHIND_OPTION: a saved schedule is JSON, and a result may go
 * to a text. */
static bool names_file(int argc, char **argv, const char *end, bool behind_option)
{
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-' && text_ends_with(argv[i], end) && (behind_option || !takes_word(argv[i - 1])))
            return true;
    return false;
}

/* `explore` is three commands; the file that it is given, if any, says which. SQL that is no specification gets an error that says what
 * one is. */
static int (*explorer_of(int argc, char **argv))(int, char **)
{
    if (names_file(argc, argv, ".json", false))
        return explore_own_main;
    if (names_file(argc, argv, ".spec", true) || names_file(argc, argv, ".sql", false) ||
        names_file(argc, argv, ".txt", false))
        return spec_main;
    return explore_main;
}

static int run_command(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return ENDED_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return ENDED_AS_EXPECTED;
    }
    int (*explorer)(int, char **) = strcmp(argv[1], "explore") == 0 ? explorer_of(argc - 1, argv + 1) : NULL;
    if (explorer && explorer != explore_main) /* this program's strategies have no part in it */
        return explorer(argc - 1, argv + 1);
    char error[400];
    if (!strategies_validate(error, sizeof error)) {
        complain("%s", error);
        return ENDED_USAGE;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(argv[1], COMMANDS[i].name) == 0)
            return COMMANDS[i].run(argc - 1, argv + 1);

    plain_print(stderr, "loadtest: unknown command '%s' (valid:", argv[1]);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        plain_print(stderr, " %s", COMMANDS[i].name);
    fputs(")\n", stderr);
    return ENDED_USAGE;
}

int main(int argc, char **argv)
{
    int status = run_command(argc, argv);
    errno = 0; /* an earlier write may have failed: then its reason is no longer known */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    complain("cannot write the output: %s",
             errno ? strerror(errno) : "the program that reads it has closed the pipe, or the disk is full");
    return status == ENDED_AS_EXPECTED ? ENDED_ENVIRONMENT : status;
}
