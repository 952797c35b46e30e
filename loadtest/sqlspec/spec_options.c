/* The options of `loadtest explore FILE.spec`, as a table. */
#include "loadtest/sqlspec/spec_options.h"

#include <stddef.h>

#define AT(member) offsetof(struct spec_settings, member)

static const struct option_row RUN_ROWS[] = {
    {"--database", "URL", OPTION_TEXT, AT(database), 0, 0, NULL,
     "The server: postgresql://…, mariadb://… or mysql://… . The file's setup and teardown run there, so name a database "
     "for tests. mariadb or mysql: a private MariaDB that the command starts. Default: a private PostgreSQL."},
    {"--replay", "STEPS", OPTION_TEXTS, AT(replays), 0, 0, NULL,
     "Run one schedule and show it with a column for each session, instead of a search. STEPS are names of steps, "
     "as in a permutation line: 's1a s2a s1b'. The option may be repeated."},
    {"--all", NULL, OPTION_FLAG, AT(all), 0, 0, NULL,
     "Search all interleavings, although the file has permutation lines."},
    {"--step-time", "TIME", OPTION_DURATION, AT(step_ms), 100, 3600000, NULL,
     "Cancel a step that takes longer than this and is not blocked by another session."},
};

static const char *const REDUCTIONS[] = {"tables", "none", NULL};

static const struct option_row SEARCH_ROWS[] = {
    {"--limit", "N", OPTION_NUMBER, AT(limit), 0, INT32_MAX, NULL, "Run at most N schedules. 0: all."},
    {"--time", "TIME", OPTION_DURATION, AT(time_ms), 0, 86400000, NULL,
     "Search for at most this long. 0: no limit."},
    {"--max-schedules", "N", OPTION_NUMBER, AT(limit), 0, INT32_MAX, NULL, "The same as --limit."},
    {"--time-limit", "TIME", OPTION_DURATION, AT(time_ms), 0, 86400000, NULL, "The same as --time."},
    {"--bound", "N", OPTION_NUMBER, AT(bound), 0, 256, NULL,
     "Run only schedules with at most N preemptions: switches from a session that could continue."},
    {"--reduce", "HOW", OPTION_CHOICE, AT(reduce), 0, 0, REDUCTIONS,
     "tables: run one of the schedules that differ only in the sequence of steps on different tables. It counts for all of them. "
     "none: run all."},
    {"--sample", "N", OPTION_NUMBER, AT(samples), 0, INT32_MAX, NULL,
     "Run N random schedules instead of all."},
    {"--seed", "S", OPTION_NUMBER, AT(seed), 0, INT64_MAX, NULL, "Seed of the random schedules."},
    {"--show", "N", OPTION_NUMBER, AT(show), 0, 64, NULL,
     "Print one schedule for each of the first N anomalies, with a column for each session."},
};

static const struct option_rows RUN_OPTIONS = OPTION_ROWS("What to run", RUN_ROWS),
                                SEARCH_OPTIONS = OPTION_ROWS("Search", SEARCH_ROWS);

const struct command_line spec_line = {
    .name = "explore",
    .operands = "FILE.spec",
    .min_operands = 1,
    .max_operands = 1,
    .summary =
        "Runs SQL steps of several sessions in every interleaving, and names the anomalies.\n\n"
        "FILE.spec has the format of PostgreSQL's isolation tester: setup, teardown, sessions with steps, and permutation "
        "lines. With permutation lines, the command runs only these, and its report is that of the isolation tester. "
        "Without them, it runs every interleaving of the sessions. It compares each outcome (what the steps "
        "returned, and the contents of the tables) with those of the serial executions, in "
        "which one session runs after the other. A block "
        "invariant { SQL } must return true at the end.\n\n"
        "Exit status: 0 no anomaly, 1 an anomaly or a broken invariant, 2 the file or the command line is wrong, 3 the "
        "steps could not be run, or another session could act inside one of them (verdict not-explored).",
    .example = "loadtest explore tests/lab/specs/lost-update.spec --show 1",
    .groups = {{&RUN_OPTIONS, 0}, {&SEARCH_OPTIONS, 0}, {&output_options, AT(output)}},
};
