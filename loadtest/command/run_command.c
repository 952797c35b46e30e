/* Runs a command of the load test, from its command line to its exit status. */
#include "loadtest/command/run_command.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/selection.h"
#include "loadtest/report/reproduce.h"
#include "loadtest/report/result.h"

static int run_with_strategies(const struct command *command, struct testbed *testbed, const char *list,
                               void *settings)
{
    json_auto_t *table = service_client_strategies(testbed->clients[0]);
    if (!table) {
        (void)service_client_failed(testbed->clients[0]);
        return ENDED_ENVIRONMENT;
    }
    json_auto_t *rows = selection_rows(table, list);
    return rows ? command->run(testbed, rows, settings) : ENDED_USAGE;
}

static int run_in_testbed(const struct command *command, void *settings)
{
    const struct testbed_settings *place = (const void *)((const char *)settings + command->testbed);
    struct testbed testbed;
    if (!testbed_open(place, &testbed))
        return ENDED_ENVIRONMENT;
    int status = run_with_strategies(command, &testbed, place->strategies, settings);
    if (status != ENDED_AS_EXPECTED && !interrupted())
        testbed_explain_full_disk(&testbed);
    testbed_close(&testbed);
    return status;
}

int run_command(const struct command *command, int argc, char **argv, void *settings)
{
    struct texts operands;
    switch (options_parse(&command->line, argc, argv, settings, &operands)) {
    case OPTIONS_OK: break;
    case OPTIONS_HELP: return ENDED_AS_EXPECTED;
    case OPTIONS_BAD: return ENDED_USAGE;
    }
    reproduce_by(argc, argv);
    int status = command->begin(settings, &operands);
    if (status != COMMAND_GOES_ON)
        return status;
    interrupt_watch();
    status = command->run_alone ? command->run_alone(settings) : run_in_testbed(command, settings);
    return interrupt_status(status);
}

int command_result(const struct result_kind *kind, json_t *settings, const json_t *rows, const char *list,
                   const struct output_settings *output)
{
    json_auto_t *document = result_new(kind->name, settings);
    if (!document || json_object_set(document, "rows", (json_t *)rows) != 0) {
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    return output_write(kind, document, output) ? result_status(rows, list) : ENDED_ENVIRONMENT;
}
