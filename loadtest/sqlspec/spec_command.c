/* `loadtest explore FILE.spec`: reads the file, connects, and runs its permutations, a schedule, or all interleavings. */
#include "base/clock.h"
#include "base/text.h"
#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/plain_text.h"
#include "loadtest/cli/terminal.h"
#include "loadtest/command/run_command.h"
#include "loadtest/report/result.h"
#include "loadtest/sqlspec/columns_text.h"
#include "loadtest/sqlspec/permutation.h"
#include "loadtest/sqlspec/permutation_result.h"
#include "loadtest/sqlspec/spec_options.h"
#include "loadtest/sqlspec/spec_result.h"
#include "loadtest/sqlspec/spec_search.h"
#include "loadtest/testbed/stack.h"

#include <stdlib.h>
#include <string.h>

enum { GRACE_MS = 3000 };

/* What one run of the command has. */
struct spec_run {
    const struct spec_settings *settings;
    struct spec spec;
    struct connections connections;
    bool is_report; /* the isolation tester's report on stdout */
    json_t *events; /* of the current permutation */
};

/* ---- permutations -------------------------------------------------------------------------------------- */

static void take_event(void *context, const json_t *event)
{
    struct spec_run *run = context;
    (void)json_array_append(run->events, (json_t *)event);
    if (run->is_report)
        permutation_print(stdout, event);
}

/* The row of a permutation; NULL, having said why. */
static json_t *run_permutation(struct spec_run *run, const struct spec_permutation *permutation,
                               bool ends_waits)
{
    const char *broken = NULL;
    run->events = json_array();
    run->connections.on_event = take_event;
    run->connections.context = run;
    if (!run->events || !permutation_run(&run->connections, permutation, ends_waits, &broken)) {
        json_decref(run->events);
        return NULL;
    }
    if (broken && run->is_report)
        plain_print(stdout, "invariant broken: %s\n", broken);
    return permutation_row_new(run->events, broken);
}

static int run_permutations(struct spec_run *run)
{
    const struct spec_settings *settings = run->settings;
    json_auto_t *rows = json_array();
    bool ok = rows != NULL;
    run->is_report = strcmp(settings->output.format, "table") == 0 && !settings->output.output;
    if (run->is_report)
        printf("Parsed test spec with %zu sessions\n", run->spec.session_count);
    for (size_t i = 0; ok && i < run->spec.permutation_count; i++) {
        json_t *row = run_permutation(run, &run->spec.permutations[i], false);
        ok = row && json_array_append_new(rows, row) == 0;
        (void)fflush(stdout);
        if (run->is_report)
            interrupt_shown();
    }
    if (!ok && (!interrupted() || json_array_size(rows) == 0))
        return ENDED_ENVIRONMENT;
    struct output_settings output = settings->output;
    if (run->is_report)
        output.output = "/dev/null"; /* the report is the result; only the exports are left to write */
    json_t *facts = json_pack("{s:s}", "file", settings->path);
    return command_result(&permutation_result, facts, rows, "", &output);
}

/* ---- schedules in columns ------------------------------------------------------------------------------ */

/* Runs WORDS, and prints a column for each session unless the result is for a program. Returns the row; NULL, having said why. */
static json_t *show_schedule(struct spec_run *run, const char *words, bool prints)
{
    struct spec_permutation schedule;
    char error[SPEC_ERROR_SIZE];
    size_t width = terminal_width(stdout);
    if (!spec_parse_permutation(&run->spec, words, &schedule, error)) {
        complain("%s", error);
        return NULL;
    }
    run->is_report = false;
    json_t *row = run_permutation(run, &schedule, true);
    free(schedule.steps);
    if (!row || !connections_reset(&run->connections)) {
        json_decref(row);
        return NULL;
    }
    const char *broken = result_text(row, "broken_invariant");
    if (prints) {
        plain_print(stdout, "\n%s\n\n", words);
        (void)columns_print(stdout, &run->spec, json_object_get(row, "events"), width);
        if (*broken)
            plain_print(stdout, "\nThis invariant is not true: %s\n", broken);
    }
    return row;
}

static int run_replays(struct spec_run *run)
{
    const struct spec_settings *settings = run->settings;
    json_auto_t *rows = json_array();
    bool prints = strcmp(settings->output.format, "table") == 0 && !settings->output.output;
    struct output_settings output = settings->output;
    for (size_t i = 0; i < settings->replays.count; i++) {
        json_t *row = show_schedule(run, settings->replays.item[i], prints);
        if (!row && interrupted() && i > 0)
            break;
        if (!row || json_array_append_new(rows, row) != 0)
            return ENDED_ENVIRONMENT;
    }
    if (prints)
        output.output = "/dev/null";
    return command_result(&permutation_result, json_pack("{s:s}", "file", settings->path), rows, "", &output);
}

/* Prints the first schedules that fail, or else those that end with an error. */
static bool show_found(struct spec_run *run, const json_t *rows)
{
    int64_t shown = 0;
    for (int fails = 1; fails >= 0; fails--) {
        size_t i;
        json_t *row;
        json_array_foreach(rows, i, row) {
            bool wanted = fails ? verdict_fails(result_verdict(row))
                                : !verdict_fails(result_verdict(row)) &&
                                      strcmp(result_text(row, "outcome"), "serial") != 0;
            if (!wanted || shown++ >= run->settings->show)
                continue;
            printf("\n%s", result_text(row, "outcome"));
            json_t *shown_row = show_schedule(run, result_text(row, "schedule"), true);
            if (!shown_row)
                return false;
            json_decref(shown_row);
        }
    }
    return true;
}

static int run_search(struct spec_run *run)
{
    const struct spec_settings *settings = run->settings;
    json_auto_t *found = spec_search(&run->connections, settings);
    if (!found)
        return ENDED_ENVIRONMENT;
    json_auto_t *document = result_new(
        specification_result.name,
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "file", settings->path, "sessions",
                  (json_int_t)run->spec.session_count, "limit", (json_int_t)settings->limit, "time_ms",
                  (json_int_t)settings->time_ms, "bound", (json_int_t)settings->bound, "sample",
                  (json_int_t)settings->samples, "seed", (json_int_t)settings->seed));
    if (!document || json_object_update(document, found) != 0) {
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    const json_t *rows = json_object_get(document, "rows");
    if (!output_write(&specification_result, document, &settings->output))
        return ENDED_ENVIRONMENT;
    if (!interrupt_came() && strcmp(settings->output.format, "table") == 0 && !settings->output.output &&
        !show_found(run, rows))
        return ENDED_ENVIRONMENT;
    return result_status(rows, "");
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int spec_begin(void *context, const struct texts *operands)
{
    struct spec_settings *settings = context;
    settings->path = operands->item[0];
    return output_valid(&settings->output) ? COMMAND_GOES_ON : ENDED_USAGE;
}

static const struct {
    const char *scheme;
    const struct sql_driver *driver;
} SERVERS[] = {{"mariadb://", &mariadb_driver}, {"mysql://", &mariadb_driver}};

/* The driver for ADDRESS; libpq also reads other texts. */
static const struct sql_driver *driver_of(const char *address)
{
    for (size_t i = 0; i < sizeof SERVERS / sizeof SERVERS[0]; i++)
        if (strncmp(address, SERVERS[i].scheme, strlen(SERVERS[i].scheme)) == 0)
            return SERVERS[i].driver;
    return &postgres_driver;
}

static int run_in(struct spec_run *run, const char *url)
{
    if (!connections_open(driver_of(url), url, &run->spec, run->settings->path, &run->connections))
        return ENDED_ENVIRONMENT;
    run->connections.step_us = run->settings->step_ms * 1000;
    int status = run->settings->replays.count > 0                         ? run_replays(run)
                 : run->spec.permutation_count > 0 && !run->settings->all ? run_permutations(run)
                                                                          : run_search(run);
    connections_close(&run->connections);
    return status;
}

static int run_in_private_postgres(struct spec_run *run)
{
    const struct testbed_settings place = {.servers = "private", .database = true};
    struct testbed testbed;
    if (!testbed_open(&place, &testbed))
        return ENDED_ENVIRONMENT;
    int status = run_in(run, testbed.addresses.database_url);
    testbed_close(&testbed);
    return status;
}

static int run_in_private_mariadb(struct spec_run *run)
{
    const struct testbed_settings place = {.servers = "private"};
    const char *const names[] = {"mariadb", NULL};
    struct testbed testbed;
    int status = ENDED_ENVIRONMENT;
    if (!testbed_open(&place, &testbed))
        return status;
    if (stack_run(&testbed, "up", names, NULL, STACK_INTERRUPTIBLE)) {
        char *url = stack_address(&testbed, "MARIADB_URL");
        if (url)
            status = run_in(run, url);
        free(url);
    }
    testbed_close(&testbed);
    return status;
}

/* Are the schedules of --replay well formed? */
static bool check_replays(const struct spec_run *run)
{
    char error[SPEC_ERROR_SIZE];
    for (size_t i = 0; i < run->settings->replays.count; i++) {
        struct spec_permutation schedule;
        if (!spec_parse_permutation(&run->spec, run->settings->replays.item[i], &schedule, error)) {
            complain("--replay: %s", error);
            return false;
        }
        free(schedule.steps);
    }
    return true;
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
    interrupt_grace(GRACE_MS); /* for the schedule that runs, and for the names of what was found */
    if (!spec_read(settings->path, &run->spec, error)) {
        complain("%s", error);
        if (!text_ends_with(settings->path, ".spec"))
            complain(
                "A specification is a text of blocks, such as session a step look { SELECT 1; }. Its name ends with .spec. See "
                "docs/sql-specifications.md");
        status = ENDED_USAGE;
    } else if (!check_replays(run)) {
        status = ENDED_USAGE;
    } else if (!settings->database || strcmp(settings->database, "postgresql") == 0) {
        status = run_in_private_postgres(run);
    } else if (strcmp(settings->database, "mariadb") == 0 || strcmp(settings->database, "mysql") == 0) {
        status = run_in_private_mariadb(run);
    } else {
        status = run_in(run, settings->database);
    }
    spec_free(&run->spec);
    free(run);
    return status;
}

int spec_main(int argc, char **argv)
{
    struct spec_settings settings = SPEC_DEFAULTS;
    const struct command command = {.line = spec_line, .begin = spec_begin, .run_alone = run_command_of};
    return run_command(&command, argc, argv, &settings);
}
