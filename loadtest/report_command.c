/* `loadtest report`: prints a stored result again, in any format, so that nothing is run twice; or puts several together. */
#include "loadtest/cli/complain.h"
#include "loadtest/command/run_command.h"
#include "loadtest/explore/run/fault_matrix.h"
#include "loadtest/history/history.h"
#include "loadtest/report/result.h"
#include "loadtest/result_kinds.h"

#include <string.h>

static int print(const json_t *document, const char *path, const struct output_settings *settings)
{
    const struct result_kind *kind = result_kind_of(document, path);
    return kind && output_write(kind, document, settings) ? ENDED_AS_EXPECTED : ENDED_ENVIRONMENT;
}

/* The results may be the same file, or come from two machines with the same name: then a path tells them apart. */
static int print_together(json_t *const *results, const struct texts *files,
                          const struct output_settings *settings)
{
    json_auto_t *document = fault_matrix_fits(results, files->count)
                                ? fault_matrix_new(results, files->item, files->count)
                                : history_new(results, files->item, files->count);
    return document ? print(document, "the comparison", settings) : ENDED_USAGE;
}

/* A stored result that can be printed; the caller's. NULL, with the reason on stderr. */
static json_t *load(const char *path)
{
    json_t *document = result_load(path);
    if (document && !result_kind_of(document, path)) {
        json_decref(document);
        document = NULL;
    }
    return document;
}

static int report_begin(void *context, const struct texts *files)
{
    const struct output_settings *settings = context;
    json_t *results[HISTORY_MAX] = {NULL};
    size_t loaded = 0;
    if (!output_valid(settings))
        return ENDED_USAGE;
    while (loaded < files->count && (results[loaded] = load(files->item[loaded])))
        loaded++;
    int status = loaded < files->count ? ENDED_USAGE
                 : loaded == 1         ? print(results[0], files->item[0], settings)
                                       : print_together(results, files, settings);
    for (size_t i = 0; i < loaded; i++)
        json_decref(results[i]);
    return status;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "report",
            .operands = "FILE…",
            .min_operands = 1,
            .max_operands = HISTORY_MAX,
            .summary =
                "Prints a stored result again, in any format, or puts several results together.\n"
                "\n"
                "FILE was written by --export-json or --format json. Use - for stdin. Several files must be results of "
                "the same command. A difference is marked if it is larger than the spread of the runs. Results of "
                "explore with different faults become one matrix of strategies and faults.",
            .example = "loadtest report before.json after.json --export-html difference.html",
            .groups = {{&output_options, 0}},
        },
    .begin = report_begin,
};

int report_main(int argc, char **argv)
{
    struct output_settings settings = OUTPUT_DEFAULTS;
    return run_command(&COMMAND, argc, argv, &settings);
}
