/* The options of `loadtest explore FILE.spec`, as a table. */
#include "loadtest/sqlspec/spec_options.h"

#include <stddef.h>

#define AT(member) offsetof(struct spec_settings, member)

static const struct option_row RUN_ROWS[] = {
    {"--database", "URL", OPTION_TEXT, AT(database), 0, 0, NULL,
     "The server, as postgresql://… . The file's setup and teardown run there, so name a database for tests. "
     "Default: a private PostgreSQL that the command starts."},
    {"--step-time", "TIME", OPTION_DURATION, AT(step_ms), 100, 3600000, NULL,
     "Cancel a step that takes longer than this and is not blocked by another session."},
};

static const struct option_rows RUN_OPTIONS = OPTION_ROWS("What to run", RUN_ROWS);

const struct command_line spec_line = {
    .name = "explore",
    .operands = "FILE.spec",
    .min_operands = 1,
    .max_operands = 1,
    .summary =
        "Runs SQL steps of several sessions in given sequences, and reports who waits and what each step returns.\n\n"
        "FILE.spec has the format of PostgreSQL's isolation tester: setup, teardown, sessions with steps, and permutation "
        "lines. The report is the isolation tester's. A block invariant { SQL } must return true at the end.\n\n"
        "Exit status: 0 done, 1 a broken invariant, 2 the file or the command line is wrong, 3 the steps could not be run.",
    .example = "loadtest explore tests/lab/specs/permutations.spec",
    .groups = {{&RUN_OPTIONS, 0}, {&output_options, AT(output)}},
};
