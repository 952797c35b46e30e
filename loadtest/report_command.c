/* `loadtest report`: prints a stored result again, in any format, so that nothing is run twice. */
#include "loadtest/command/run_command.h"
#include "loadtest/report/result.h"
#include "loadtest/result_kinds.h"

static int print(void *settings, const struct texts *files)
{
    if (!output_valid(settings))
        return ENDED_USAGE;
    json_auto_t *document = result_load(files->item[0]);
    if (!document)
        return ENDED_USAGE;
    const struct result_kind *kind = result_kind_of(document);
    return kind && output_write(kind, document, settings) ? ENDED_AS_EXPECTED : ENDED_ENVIRONMENT;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "report",
            .operands = "FILE",
            .min_operands = 1,
            .max_operands = 1,
            .summary = "Prints a stored result again, in any format.\n"
                       "\n"
                       "FILE was written by --export-json or --format json. Use - for stdin.",
            .example = "loadtest report --format markdown result.json",
            .groups = {{&output_options, 0}},
        },
    .begin = print,
};

int report_main(int argc, char **argv)
{
    struct output_settings settings = OUTPUT_DEFAULTS;
    return run_command(&COMMAND, argc, argv, &settings);
}
