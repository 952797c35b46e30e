/* `loadtest explore FILE.spec`: reads the file, connects, and runs its permutations, a schedule, or all interleavings. */
#include "loadtest/sqlspec/spec_command.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/command/run_command.h"
#include "loadtest/sqlspec/permutation.h"
#include "loadtest/sqlspec/permutation_result.h"
#include "loadtest/sqlspec/spec_options.h"

#include <stdlib.h>
#include <string.h>

bool spec_is_meant(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t length = strlen(argv[i]);
        if (argv[i][0] != '-' && length > 5 && strcmp(argv[i] + length - 5, ".spec") == 0)
            return true;
    }
    return false;
}

/* What one run of the command has. */
struct spec_run {
    const struct spec_settings *settings;
    struct spec spec;
    struct connections connections;
    bool prints; /* the isolation tester's report on stdout */
    json_t *events;
};

/* ---- permutations -------------------------------------------------------------------------------------- */

static void take_event(void *context, const json_t *event)
{
    struct spec_run *run = context;
    (void)json_array_append(run->events, (json_t *)(uintptr_t)event);
    if (run->prints)
        permutation_print(stdout, event);
}

/* The row of a permutation; NULL, having said why. */
static json_t *run_permutation(struct spec_run *run, const struct spec_permutation *permutation)
{
    const char *broken = NULL;
    run->events = json_array();
    run->connections.on_event = take_event;
    run->connections.context = run;
    if (!run->events || !permutation_run(&run->connections, permutation, &broken)) {
        json_decref(run->events);
        return NULL;
    }
    if (broken && run->prints)
        printf("invariant broken: %s\n", broken);
    return permutation_row_new(run->events, broken);
}

static int run_permutations(struct spec_run *run)
{
    const struct spec_settings *settings = run->settings;
    json_auto_t *rows = json_array();
    bool well = rows != NULL;
    run->prints = strcmp(settings->output.format, "table") == 0 && !settings->output.output;
    if (run->prints)
        printf("Parsed test spec with %zu sessions\n", run->spec.session_count);
    for (size_t i = 0; well && i < run->spec.permutation_count; i++) {
        json_t *row = run_permutation(run, &run->spec.permutations[i]);
        well = row && json_array_append_new(rows, row) == 0;
        (void)fflush(stdout);
    }
    if (!well)
        return ENDED_ENVIRONMENT;
    struct output_settings output = settings->output;
    if (run->prints)
        output.output = "/dev/null"; /* the report is the result; only the exports are left to write */
    json_t *facts = json_pack("{s:s}", "file", settings->path);
    return command_result(&permutation_result, facts, rows, "", &output);
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int begin(void *context, const struct texts *operands)
{
    struct spec_settings *settings = context;
    settings->path = operands->item[0];
    return output_valid(&settings->output) ? COMMAND_GOES_ON : ENDED_USAGE;
}

static int run_in(struct spec_run *run, const char *url)
{
    if (!connections_open(&postgres_driver, url, &run->spec, run->settings->path, &run->connections))
        return ENDED_ENVIRONMENT;
    run->connections.step_us = run->settings->step_ms * 1000;
    int status = run_permutations(run);
    connections_close(&run->connections);
    return status;
}

static int run_command_of(void *context)
{
    const struct spec_settings *settings = context;
    char error[SPEC_ERROR_SIZE];
    struct spec_run *run = calloc(1, sizeof *run);
    int status = ENDED_ENVIRONMENT;
    if (!run) {
        complain("out of memory");
        return status;
    }
    run->settings = settings;
    if (!spec_read(settings->path, &run->spec, error)) {
        complain("%s", error);
        status = ENDED_USAGE;
    } else if (run->spec.permutation_count == 0) {
        complain("%s has no permutation. Add a line with the names of the steps in their sequence",
                 settings->path);
        status = ENDED_USAGE;
    } else if (settings->database) {
        status = run_in(run, settings->database);
    } else {
        const struct testbed_settings place = {.servers = "private", .database = true};
        struct testbed testbed;
        if (testbed_open(&place, &testbed)) {
            status = run_in(run, testbed.addresses.database_url);
            testbed_close(&testbed);
        }
    }
    spec_free(&run->spec);
    free(run);
    return status;
}

int spec_main(int argc, char **argv)
{
    struct spec_settings settings = SPEC_DEFAULTS;
    const struct command command = {.line = spec_line, .begin = begin, .run_alone = run_command_of};
    return run_command(&command, argc, argv, &settings);
}
