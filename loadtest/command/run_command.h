/* Runs a command of the load test, from its command line to its exit status. */
#ifndef OVERSELL_LOADTEST_COMMAND_RUN_COMMAND_H
#define OVERSELL_LOADTEST_COMMAND_RUN_COMMAND_H

#include "loadtest/cli/commands.h"
#include "loadtest/cli/options.h"
#include "loadtest/report/output.h"
#include "loadtest/testbed/testbed.h"

#include <jansson.h>

enum { COMMAND_GOES_ON = -1 };

struct command {
    struct command_line line;
    /* Checks the settings that the command line gave, before anything is started. COMMAND_GOES_ON, or the exit status, having
     * said on stderr what is wrong. */
    int (*begin)(void *settings, const struct texts *operands);
    /* Does the work in a testbed that is open, with the STRATEGIES of its services that the testbed's settings name. Returns
     * the exit status, having said why on stderr unless it was an interrupt. */
    int (*run)(struct testbed *testbed, const json_t *strategies, void *settings);
    size_t testbed; /* offset of the struct testbed_settings in the settings */
    /* In place of run, for a command with a testbed of another kind. */
    int (*run_alone)(void *settings);
};

/* Parses the command line into SETTINGS, which hold the defaults, and runs the command. Returns the exit status: after an
 * interrupt 128 and the signal's number. The main thread calls it, once. */
int run_command(const struct command *command, int argc, char **argv, void *settings);

/* Writes the result of a command whose rows are strategies; SETTINGS, their JSON, is stolen. Returns the exit status that the
 * verdicts ask for; LIST as result_status. */
int command_result(const struct result_kind *kind, json_t *settings, const json_t *rows, const char *list,
                   const struct output_settings *output);

#endif
