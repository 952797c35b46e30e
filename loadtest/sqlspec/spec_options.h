/* The options of `loadtest explore FILE.spec`. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_SPEC_OPTIONS_H
#define OVERSELL_LOADTEST_SQLSPEC_SPEC_OPTIONS_H

#include "loadtest/cli/options.h"
#include "loadtest/report/output.h"

/* The texts belong to argv. */
struct spec_settings {
    const char *path;
    const char *database; /* NULL: a private PostgreSQL */
    bool all;             /* search although the file has permutation lines */
    struct texts replays;
    int64_t step_ms;
    const char *
        reduce; /* "none", or "tables": schedules that differ only in the sequence of steps on other tables run once */
    int64_t limit, time_ms, samples, seed, bound, show;
    struct output_settings output;
};

extern const struct command_line spec_line;
#define SPEC_DEFAULTS                                                                                        \
    {                                                                                                        \
        .step_ms = 30000, .seed = 1, .bound = -1, .show = 1, .reduce = "tables", .output = OUTPUT_DEFAULTS   \
    }

#endif
