/* The options of `loadtest explore`, and their limits and defaults. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXPLORE_OPTIONS_H
#define OVERSELL_LOADTEST_EXPLORE_EXPLORE_OPTIONS_H

#include "loadtest/cli/options.h"
#include "loadtest/explore/run/explore_strategy.h"
#include "loadtest/report/output.h"

/* The texts belong to argv. */
struct explore_settings {
    const char *strategies;
    const char *quantities;
    const char *servers;
    const char *faults, *reduce;
    const char *never; /* NULL: what each row promises */
    bool serve;
    int64_t jobs;
    struct texts replays;
    bool sent;
    const char *save; /* NULL: nowhere */
    struct explore_plan plan;
    struct output_settings output;
};

/* Reads the options; on stderr it says what is wrong, on stdout it prints the help. */
enum options_outcome explore_options_parse(int argc, char **argv, struct explore_settings *ret_settings);
/* The settings as they stand in a result; a new reference, NULL when out of memory. */
json_t *explore_settings_json(const struct explore_settings *settings);

#endif
