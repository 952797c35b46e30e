/* `loadtest diff A B`: the cells in which two strategies differ, and what that leads to. */
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/plain_text.h"
#include "loadtest/command/run_command.h"
#include "loadtest/compare/compare_result.h"
#include "loadtest/load/comparison.h"
#include "loadtest/report/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct diff_settings {
    const char *results; /* a stored result; NULL: measure */
    struct comparison comparison;
    struct output_settings output;
    struct texts names; /* of the two strategies */
    char list[160];     /* the same, with a comma between */
};

#define AT(member) offsetof(struct diff_settings, member)

static const struct option_row ROWS[] = {
    {"--results", "FILE", OPTION_TEXT, AT(results), 0, 0, NULL,
     "Read both strategies from a stored result of compare, and run nothing."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

/* ---- the cells ----------------------------------------------------------------------------------------- */

/* A value as people read it, an object by its name; the caller's. */
static json_t *readable(const json_t *value)
{
    if (json_object_get(value, "name"))
        value = json_object_get(value, "name");
    if (!value || json_is_null(value))
        return json_string("–");
    if (json_is_boolean(value))
        return json_string(json_is_true(value) ? "yes" : "no");
    if (json_is_string(value))
        return json_incref((json_t *)value);
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    json_t *string = text ? json_string(text) : NULL;
    free(text);
    return string;
}

static bool append_cell(json_t *cells, const char *path, const json_t *a, const json_t *b)
{
    if (json_equal((json_t *)a, (json_t *)b) || (!a && !b))
        return true;
    return json_array_append_new(
               cells, json_pack("{s:s, s:o, s:o}", "cell", path, "a", readable(a), "b", readable(b))) == 0;
}

/* Adds the cells below PATH that differ. */
static bool append_cells(json_t *cells, const char *path, json_t *a, json_t *b)
{
    if (!json_is_object(a) || !json_is_object(b))
        return append_cell(cells, path, a, b);
    json_auto_t *keys = json_object();
    const char *key;
    json_t *value;
    if (json_object_update(keys, a) != 0 || json_object_update_missing(keys, b) != 0)
        return false;
    json_object_foreach(keys, key, value) {
        /* Prose, not cells; and a lock that is not there on this machine is no property of the strategy. */
        static const char *const NOT_CELLS[] = {"name", "title", "why", "use_for", "available", "reason"};
        char below[128];
        bool skipped = false;
        for (size_t i = 0; !*path && i < sizeof NOT_CELLS / sizeof NOT_CELLS[0]; i++)
            skipped = skipped || strcmp(key, NOT_CELLS[i]) == 0;
        snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
        if (!skipped && !append_cells(cells, below, json_object_get(a, key), json_object_get(b, key)))
            return false;
    }
    return true;
}

/* ---- the document -------------------------------------------------------------------------------------- */

/* SETTINGS is stolen. */
static json_t *diff_document(const json_t *rows, const char *a, const char *b, json_t *settings)
{
    const json_t *row_a = result_find(rows, a), *row_b = result_find(rows, b);
    json_auto_t *cells = json_array();
    if (!row_a || !row_b) {
        plain_print(stderr, "loadtest diff: the stored result has no strategy '%s'\n", row_a ? b : a);
        json_decref(settings);
        return NULL;
    }
    json_t *document = result_new("diff", settings);
    if (document &&
        append_cells(cells, "", json_object_get(row_a, "cells"), json_object_get(row_b, "cells")) &&
        json_object_set_new(document, "a", json_string(a)) == 0 &&
        json_object_set_new(document, "b", json_string(b)) == 0 &&
        json_object_set(document, "cells", cells) == 0 &&
        json_object_set_new(document, "rows", json_pack("[O, O]", row_a, row_b)) == 0)
        return document;
    complain("out of memory");
    json_decref(document);
    return NULL;
}

/* ---- where it comes from ------------------------------------------------------------------------------- */

/* SETTINGS_JSON is stolen. */
static int print_diff(const json_t *rows, json_t *settings_json, const struct diff_settings *settings)
{
    json_auto_t *document = diff_document(rows, settings->names.item[0], settings->names.item[1],
                                          settings_json);
    if (!document)
        return ENDED_USAGE;
    if (!output_write(&diff_result, document, &settings->output))
        return ENDED_ENVIRONMENT;
    size_t counts[VERDICT_COUNT];
    return result_verdicts(json_object_get(document, "rows"), counts) > 0 ? ENDED_BROKEN : ENDED_AS_EXPECTED;
}

static int diff_stored(const struct diff_settings *settings)
{
    json_auto_t *stored = result_load(settings->results);
    if (!stored)
        return ENDED_USAGE;
    if (strcmp(result_kind_name(stored), "compare") != 0) {
        plain_print(stderr, "loadtest diff: %s is not a result of compare\n", settings->results);
        return ENDED_USAGE;
    }
    return print_diff(json_object_get(stored, "rows"), json_incref(json_object_get(stored, "settings")),
                      settings);
}

static int diff_begin(void *context, const struct texts *operands)
{
    struct diff_settings *settings = context;
    if (!comparison_settle(&settings->comparison) || !output_valid(&settings->output))
        return ENDED_USAGE;
    settings->names = *operands;
    if (settings->results)
        return diff_stored(settings);
    snprintf(settings->list, sizeof settings->list, "%s,%s", operands->item[0], operands->item[1]);
    settings->comparison.testbed.strategies = settings->list;
    return COMMAND_GOES_ON;
}

static int diff_run(struct testbed *testbed, const json_t *strategies, void *context)
{
    const struct diff_settings *settings = context;
    json_auto_t *rows = comparison_run(&settings->comparison, testbed, strategies);
    if (!rows || interrupted()) /* one strategy alone is no difference */
        return ENDED_ENVIRONMENT;
    return print_diff(rows, comparison_settings(&settings->comparison, testbed, strategies), settings);
}

static const struct command COMMAND = {
    .line =
        {
            .name = "diff",
            .operands = "A B",
            .min_operands = 2,
            .max_operands = 2,
            .summary = "Shows how two strategies differ: the cells of the strategy table, and the result of "
                       "each.\n"
                       "\n"
                       "The command runs both strategies as compare does, unless --results names a stored "
                       "result.",
            .example = "loadtest diff read-write atomic-decrement",
            .groups = {{&OPTIONS, 0},
                       {&testbed_options, AT(comparison.testbed)},
                       {&comparison_options, AT(comparison)},
                       {&output_options, AT(output)}},
        },
    .begin = diff_begin,
    .run = diff_run,
    .testbed = AT(comparison.testbed),
};

int diff_main(int argc, char **argv)
{
    /* Two services, which also shows what a lock inside one process is worth. */
    struct diff_settings settings = {.comparison = comparison_defaults(2), .output = OUTPUT_DEFAULTS};
    return run_command(&COMMAND, argc, argv, &settings);
}
