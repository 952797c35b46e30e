/* `loadtest report`: prints a stored result again, in any format, so that nothing is run twice. */
#include "loadtest/cli/commands.h"
#include "loadtest/report/output.h"
#include "loadtest/report/result.h"
#include "loadtest/result_kinds.h"

static const struct command_line LINE = {
    .name = "report",
    .operands = "FILE",
    .min_operands = 1,
    .max_operands = 1,
    .summary =
        "Prints a result that was stored with --export-json or --format json; FILE may be - for stdin.",
    .groups = {{&output_options, 0}},
};

int report_main(int argc, char **argv)
{
    struct output_settings settings = OUTPUT_DEFAULTS;
    struct texts files;
    switch (options_parse(&LINE, argc, argv, &settings, &files)) {
    case OPTIONS_OK: break;
    case OPTIONS_HELP: return ENDED_AS_EXPECTED;
    case OPTIONS_BAD: return ENDED_USAGE;
    }
    if (!output_valid(&settings))
        return ENDED_USAGE;
    json_auto_t *document = result_load(files.item[0]);
    if (!document)
        return ENDED_USAGE;
    const struct result_kind *kind = result_kind_of(document);
    return kind && output_write(kind, document, &settings) ? ENDED_AS_EXPECTED : ENDED_ENVIRONMENT;
}
