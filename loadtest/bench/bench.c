/* loadtest bench: how far the service is from its limits, as ratios whose two sides are measured in turns. */
#include "loadtest/bench/cases.h"
#include "loadtest/bench/profile.h"
#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/selection.h"
#include "loadtest/report/output.h"
#include "loadtest/report/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRK_CONNECTIONS 32
#define LOCK_THREADS 8
#define LOCK_THREADS_MAX 256 /* the row says how many there were */

struct bench_settings {
    int64_t rounds, duration_ms, connections;
    int64_t workers, clients; /* 0: the best are searched */
    struct texts only;
    bool profile;
    struct output_settings output;
};

#define AT(member) offsetof(struct bench_settings, member)

static const struct option_row ROWS[] = {
    {"--only", "LIST", OPTION_TEXTS, AT(only), 0, 0, NULL,
     "run only the cases that match one of these patterns, separated by commas,\nsuch as 'hot/*,sold-out'; may be repeated"},
    {"--rounds", "N", OPTION_NUMBER, AT(rounds), 1, 99, NULL,
     "how often both sides of every ratio are measured"},
    {"--duration", "TIME", OPTION_DURATION, AT(duration_ms), 1000, 600000, NULL,
     "of each measurement, in whole seconds"},
    {"--connections", "N", OPTION_NUMBER, AT(connections), 0, 10000, NULL,
     "of wrk, and threads that take locks, where the ratio's name does not\nsay (0: 32 and 8)"},
    {"--workers", "N", OPTION_NUMBER, AT(workers), 0, 256, NULL,
     "of the service (0: as many as are best, found by trying)"},
    {"--clients", "N", OPTION_NUMBER, AT(clients), 0, 100, NULL,
     "of pgbench (0: as many as are best, found by trying)"},
    {"--profile", NULL, OPTION_FLAG, AT(profile), 0, 0, NULL,
     "then also record with perf where the service's CPU time goes, in each\nratio against pgbench"},
};

static const struct option_rows OPTIONS = OPTION_ROWS(ROWS);

static const struct command_line LINE = {
    .name = "bench",
    .operands = "",
    .summary =
        "Measures how far the service is from its limits: orders a second against what pgbench does with\n"
        "the same SQL on the same database, locks against what their servers can do, and other ratios.\n"
        "Both sides are measured in turns in one run; medians are shown, with the least and the most.\n"
        "A goal that is missed is shown, not an error; so is a lock whose server is not installed.",
    .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
};

struct run {
    const struct bench_case *row;
    struct tuning tuning;
    struct sample *samples;        /* one a round */
    char unavailable[REASON_SIZE]; /* why it cannot be measured here; "": it can */
};

struct bench {
    const struct bench_settings *settings;
    struct progress progress;
    struct bench_testbed testbed;
    struct bench_case cases[CASES_MAX];
    struct run runs[CASES_MAX];
    size_t count;
    double load_average; /* of the machine, before anything was started */
};

/* ---- what is run ---------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct bench_case *row, const struct texts *only)
{
    for (size_t i = 0; i < only->count; i++)
        if (bench_case_matches(row, only->item[i]))
            return true;
    return only->count == 0;
}

/* Checks that each pattern matches a case; reports the first that does not on stderr. */
static bool each_matches(const struct bench_case *cases, size_t case_count, const char *list)
{
    const char *rest = list, *word;
    size_t length;
    while (selection_next(&rest, &word, &length)) {
        char *pattern = strndup(word, length);
        size_t i = 0;
        while (pattern && i < case_count && !bench_case_matches(&cases[i], pattern))
            i++;
        free(pattern);
        if (i < case_count && pattern)
            continue;
        fprintf(stderr, "loadtest bench: --only '%.*s' matches nothing (valid:", (int)length, word);
        for (i = 0; i < case_count; i++)
            fprintf(stderr, " %s", cases[i].name);
        fputs(")\n", stderr);
        return false;
    }
    return true;
}

/* Picks the cases and checks the rest of the settings; says on stderr what is wrong. */
static bool choose(struct bench *bench)
{
    const struct bench_settings *settings = bench->settings;
    size_t case_count = bench_cases(bench->cases);
    for (size_t i = 0; i < settings->only.count; i++)
        if (!each_matches(bench->cases, case_count, settings->only.item[i]))
            return false;
    for (size_t i = 0; i < case_count; i++)
        if (is_wanted(&bench->cases[i], &settings->only))
            bench->runs[bench->count++].row = &bench->cases[i];
    if (settings->duration_ms % 1000 != 0) {
        fputs("loadtest bench: --duration must be whole seconds: pgbench counts in them\n", stderr);
        return false;
    }
    return output_valid(&settings->output) && (!settings->profile || profile_valid());
}

static size_t steps_of(const struct bench *bench)
{
    size_t steps = 0;
    for (size_t i = 0; i < bench->count; i++)
        steps += bench->runs[i].row->tune_steps +
                 (size_t)bench->settings->rounds * bench->runs[i].row->measure_steps +
                 (bench->settings->profile ? bench->runs[i].row->measure_steps : 0);
    return steps;
}

/* The names of the strategies whose servers are needed, with commas between; NULL when out of memory. */
static char *lock_names(const struct bench *bench)
{
    char *names = NULL;
    const char *between = "";
    size_t size;
    FILE *out = open_memstream(&names, &size);
    if (!out)
        return NULL;
    for (size_t i = 0; i < bench->count; i++) {
        const struct bench_case *row = bench->runs[i].row;
        if (!row->lock && !row->script)
            continue;
        fprintf(out, "%s%s", between, row->lock ? row->lock->name : row->script->strategy);
        between = ",";
    }
    if (fclose(out) == 0)
        return names;
    free(names);
    return NULL;
}

static int64_t lock_threads(const struct bench_settings *settings)
{
    int64_t asked = settings->connections ? settings->connections : LOCK_THREADS;
    return asked < LOCK_THREADS_MAX ? asked : LOCK_THREADS_MAX;
}

/* ---- running -------------------------------------------------------------------------------------------------- */

/* The counts that the command line gives are not searched. */
static bool tune(struct bench *bench, struct run *run)
{
    const struct bench_settings *settings = bench->settings;
    if (run->row->lock)
        run->tuning.threads = run->row->threads ? run->row->threads : lock_threads(settings);
    if (!run->row->tune)
        return true;
    bool workers_given = settings->workers && !run->row->default_workers;
    bool clients_given = settings->clients || run->row->rival; /* which is the service's, not pgbench's */
    if (!(workers_given && clients_given) && !run->row->tune(&bench->testbed, run->row, &run->tuning))
        return false;
    if (workers_given)
        run->tuning.workers = settings->workers;
    if (workers_given && run->row->rival)
        run->tuning.rival_workers = settings->workers;
    if (settings->clients && !run->row->rival)
        run->tuning.clients = settings->clients;
    return true;
}

/* One more measurement under perf, which would disturb those that count. */
static bool profile(struct bench *bench, const struct run *run)
{
    struct sample ignored = {0};
    bench->testbed.profile = run->row->name;
    bool well = !run->row->tune || run->row->measure(&bench->testbed, run->row, &run->tuning, &ignored);
    bench->testbed.profile = NULL;
    return well;
}

/* One round of one case; where that cannot be had here the others go on without it. */
static bool measure(struct bench *bench, struct run *run, struct sample *ret_sample)
{
    struct bench_testbed *testbed = &bench->testbed;
    testbed->unavailable[0] = 0;
    if (run->row->measure(testbed, run->row, &run->tuning, ret_sample))
        return true;
    memcpy(run->unavailable, testbed->unavailable, sizeof run->unavailable);
    return run->unavailable[0] && !interrupted();
}

/* Rounds are outside, so that whatever changes on the machine meets all ratios and both of their sides. */
static bool measure_all(struct bench *bench)
{
    for (size_t i = 0; i < bench->count; i++)
        if (!tune(bench, &bench->runs[i]))
            return false;
    for (int64_t round = 0; round < bench->settings->rounds; round++)
        for (size_t i = 0; i < bench->count; i++) {
            struct run *run = &bench->runs[i];
            if (!run->unavailable[0] && !measure(bench, run, &run->samples[round]))
                return false;
        }
    for (size_t i = 0; bench->settings->profile && i < bench->count; i++)
        if (!profile(bench, &bench->runs[i]))
            return false;
    return true;
}

static json_t *document_of(const struct bench *bench)
{
    const struct bench_settings *settings = bench->settings;
    json_t *ratios = json_array();
    for (size_t i = 0; i < bench->count; i++) {
        const struct run *run = &bench->runs[i];
        json_t *row = run->unavailable[0]
                          ? bench_case_unavailable_json(run->row, run->unavailable)
                          : bench_case_json(run->row, &run->tuning, run->samples, (size_t)settings->rounds);
        if (!row || json_array_append_new(ratios, row) != 0) {
            json_decref(ratios);
            return NULL;
        }
    }
    json_t *document = result_new(
        "bench", json_pack("{s:I, s:I, s:I, s:f}", "rounds", (json_int_t)settings->rounds, "duration_ms",
                           (json_int_t)settings->duration_ms, "connections",
                           (json_int_t)bench->testbed.connections, "load_average", bench->load_average));
    if (document && json_object_set(document, "ratios", ratios) != 0) {
        json_decref(document);
        document = NULL;
    }
    json_decref(ratios);
    return document;
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static bool open_testbed(struct bench *bench)
{
    char *locks = lock_names(bench);
    if (!locks) {
        complain("out of memory");
        return false;
    }
    for (size_t i = 0; i < bench->count; i++)
        bench->testbed.has_shop = bench->testbed.has_shop || !bench->runs[i].row->lock;
    bench->testbed.locks = *locks ? locks : NULL;
    bool opened = bench_testbed_open(&bench->testbed);
    bench->testbed.locks = NULL;
    free(locks);
    return opened;
}

static int run(struct bench *bench)
{
    bench->progress = progress_begin(steps_of(bench));
    bench->testbed.progress = &bench->progress;
    bench->testbed.seconds = bench->settings->duration_ms / 1000;
    bench->testbed.connections = bench->settings->connections ? bench->settings->connections
                                                              : WRK_CONNECTIONS;
    progress_label(&bench->progress, "starting the servers");
    if (!open_testbed(bench))
        return interrupted() ? 128 + interrupted() : ENDED_ENVIRONMENT;
    bool measured = measure_all(bench);
    progress_wipe();
    bench_testbed_close(&bench->testbed);
    if (!measured)
        return interrupted() ? 128 + interrupted() : bench->testbed.broken ? ENDED_BROKEN : ENDED_ENVIRONMENT;

    json_t *document = document_of(bench);
    bool written = document && output_write(&bench_result, document, &bench->settings->output);
    if (!document)
        complain("out of memory");
    json_decref(document);
    return written ? ENDED_AS_EXPECTED : ENDED_ENVIRONMENT;
}

int bench_main(int argc, char **argv)
{
    struct bench_settings settings = {.rounds = 3, .duration_ms = 2000, .output = OUTPUT_DEFAULTS};
    struct bench bench = {.settings = &settings};
    struct texts operands;
    enum options_outcome parsed = options_parse(&LINE, argc, argv, &settings, &operands);
    if (parsed != OPTIONS_OK)
        return parsed == OPTIONS_HELP ? ENDED_AS_EXPECTED : ENDED_USAGE;
    if (!choose(&bench))
        return ENDED_USAGE;

    int status = ENDED_ENVIRONMENT;
    bool room = true;
    for (size_t i = 0; i < bench.count; i++) {
        bench.runs[i].samples = calloc((size_t)settings.rounds, sizeof bench.runs[i].samples[0]);
        room = room && bench.runs[i].samples;
    }
    if (getloadavg(&bench.load_average, 1) != 1)
        bench.load_average = 0;
    interrupt_watch();
    if (room)
        status = run(&bench);
    else
        complain("out of memory");
    for (size_t i = 0; i < bench.count; i++)
        free(bench.runs[i].samples);
    return status;
}
