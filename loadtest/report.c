/* `loadtest report`: prints a stored result again, in any format, so that nothing is run twice. */
#include "loadtest/commands.h"
#include "loadtest/output.h"
#include "loadtest/result.h"

struct report_settings {
    struct output_settings output;
};

static const struct option_row OPTIONS[] = {
    OUTPUT_OPTIONS(struct report_settings, output),
};

static const struct command_line LINE = {
    .name = "report",
    .operands = "FILE",
    .min_operands = 1,
    .max_operands = 1,
    .summary =
        "Prints a result that was stored with --export-json or --format json; FILE may be - for stdin.",
    .rows = OPTIONS,
    .row_count = sizeof OPTIONS / sizeof OPTIONS[0],
};

int report_main(int argc, char **argv)
{
    struct report_settings settings = {.output = OUTPUT_DEFAULTS};
    struct texts files;
    switch (options_parse(&LINE, argc, argv, &settings, &files)) {
    case OPTIONS_OK: break;
    case OPTIONS_HELP: return ENDED_AS_EXPECTED;
    case OPTIONS_BAD: return ENDED_USAGE;
    }
    if (!output_valid(&settings.output))
        return ENDED_USAGE;
    json_auto_t *document = result_load(files.item[0]);
    if (!document)
        return ENDED_USAGE;
    return output_write(document, &settings.output) ? ENDED_AS_EXPECTED : ENDED_ENVIRONMENT;
}
