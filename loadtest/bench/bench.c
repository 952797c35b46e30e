/* loadtest bench: how far the service is from its limits, as ratios whose two sides are measured in turns. */
#include "loadtest/bench/cases.h"
#include "loadtest/bench/perf.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/command/run_command.h"
#include "loadtest/report/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRK_CONNECTIONS 32
#define LOCK_THREADS 8
#define LOCK_THREADS_MAX 256 /* the row says how many there were */
#define ROUNDS_MAX 99

/* A case that is measured. */
struct run {
    const struct bench_case *row;
    struct tuning tuning;
    struct sample samples[ROUNDS_MAX];
    size_t measured;               /* of them */
    char unavailable[REASON_SIZE]; /* why it cannot be measured here; "": it can */
};

/* The settings, and what the command works with. */
struct bench {
    int64_t rounds, duration_ms, connections;
    int64_t workers, clients; /* 0: the best are searched */
    struct texts only;
    bool profile;
    struct output_settings output;
    struct progress progress;
    struct bench_testbed testbed;
    struct bench_case cases[CASES_MAX];
    struct run runs[CASES_MAX];
    size_t count;
    double load_average; /* of the machine, before anything was started */
};

#define AT(member) offsetof(struct bench, member)

static const struct option_row ROWS[] = {
    {"--only", "LIST", OPTION_TEXTS, AT(only), 0, 0, NULL,
     "Run only the ratios that match one of these patterns, separated by commas, such as "
     "'hot/*,sold-out'. The option may be repeated."},
    {"--rounds", "N", OPTION_NUMBER, AT(rounds), 1, ROUNDS_MAX, NULL,
     "Measurements of each side of a ratio."},
    {"--duration", "TIME", OPTION_DURATION, AT(duration_ms), 1000, 600000, NULL,
     "Length of each measurement, in whole seconds."},
    {"--connections", "N", OPTION_NUMBER, AT(connections), 0, 10000, NULL,
     "Connections of wrk, and threads that acquire locks. 0: 32 connections and 8 threads. A number in "
     "the name of a ratio has priority."},
    {"--workers", "N", OPTION_NUMBER, AT(workers), 0, 256, NULL,
     "Worker threads of the service. 0: the service's default, and the best of several numbers in the "
     "tuned columns."},
    {"--clients", "N", OPTION_NUMBER, AT(clients), 0, 100, NULL,
     "Clients of pgbench. 0: try several numbers and use the fastest."},
    {"--profile", NULL, OPTION_FLAG, AT(profile), 0, 0, NULL,
     "Also record with perf where the service spends its CPU time, in the ratios to pgbench and in redis-stock/hot."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

/* ---- what is run ---------------------------------------------------------------------------------------------- */

/* Picks the cases and checks the rest of the settings. */
static int begin(void *context, const struct texts *operands)
{
    struct bench *bench = context;
    bool wanted[CASES_MAX];
    size_t case_count = bench_cases(bench->cases);
    (void)operands;
    if (!bench_cases_choose(bench->cases, case_count, &bench->only, wanted))
        return ENDED_USAGE;
    for (size_t i = 0; i < case_count; i++)
        if (wanted[i])
            bench->runs[bench->count++].row = &bench->cases[i];
    if (bench->duration_ms % 1000 != 0) {
        fputs("loadtest bench: --duration must be whole seconds, because pgbench measures in seconds\n",
              stderr);
        return ENDED_USAGE;
    }
    bool valid = output_valid(&bench->output) && (!bench->profile || profile_valid());
    return valid ? COMMAND_GOES_ON : ENDED_USAGE;
}

/* The count that the command line or the case gives; 0: none is given. */
static int64_t given_count(const struct bench *bench, const struct bench_case *row, enum tuned tuned)
{
    int64_t threads = row->threads ? row->threads : bench->connections ? bench->connections : LOCK_THREADS;
    switch (tuned) {
    case TUNED_CLIENTS: return bench->clients;
    case TUNED_THREADS: return threads < LOCK_THREADS_MAX ? threads : LOCK_THREADS_MAX;
    default: return 0;
    }
}

/* Is the count searched? With --workers the service has these workers only, and there is no tuned column. */
static bool is_searched(const struct bench *bench, const struct bench_case *row, enum tuned tuned)
{
    return bench_tune_steps(tuned) > 0 && given_count(bench, row, tuned) == 0 &&
           (tuned != TUNED_WORKERS || bench->workers == 0);
}

static size_t steps_of(const struct bench *bench)
{
    size_t steps = 0;
    for (size_t i = 0; i < bench->count; i++) {
        const struct bench_case *row = bench->runs[i].row;
        size_t measured = row->measure_steps + is_searched(bench, row, row->sides[0]);
        for (size_t side = 0; side < 2; side++)
            if (is_searched(bench, row, row->sides[side]))
                steps += bench_tune_steps(row->sides[side]);
        steps += measured * (size_t)bench->rounds +
                 (bench->profile && row->profiled ? row->measure_steps : 0);
    }
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

/* ---- running -------------------------------------------------------------------------------------------------- */

/* The denominator's side first. */
static bool tune(struct bench *bench, struct run *run)
{
    for (size_t i = 2; i-- > 0;) {
        enum tuned side = run->row->sides[i];
        int64_t *count = &run->tuning.counts[side];
        *count = given_count(bench, run->row, side);
        if (is_searched(bench, run->row, side) && !bench_tune(&bench->testbed, run->row, side, count))
            return false;
    }
    return true;
}

/* One more measurement under perf, which would disturb those that count. */
static bool profile(struct bench *bench, const struct run *run)
{
    struct sample ignored = {0};
    struct tuning tuning = run->tuning;
    if (!run->row->profiled || run->unavailable[0])
        return true;
    tuning.counts[TUNED_WORKERS] = 0;
    bench->testbed.profile = run->row->name;
    bool well = run->row->measure(&bench->testbed, run->row, &tuning, &ignored);
    bench->testbed.profile = NULL;
    return well;
}

/* One round of one case; where that cannot be had here the others go on without it. */
static bool measure_round(struct bench *bench, struct run *run, struct sample *sample)
{
    struct bench_testbed *testbed = &bench->testbed;
    testbed->unavailable[0] = 0;
    if (run->row->measure(testbed, run->row, &run->tuning, sample)) {
        if (sample->denominator > 0) {
            sample->value = sample->numerator / sample->denominator;
            sample->tuned_value = sample->tuned / sample->denominator;
        }
        return true;
    }
    memcpy(run->unavailable, testbed->unavailable, sizeof run->unavailable);
    return run->unavailable[0] && !interrupted();
}

/* Rounds are outside, so that whatever changes on the machine meets all ratios and both of their sides. */
static bool measure_all(struct bench *bench)
{
    for (size_t i = 0; i < bench->count; i++)
        if (!tune(bench, &bench->runs[i]))
            return false;
    for (int64_t round = 0; round < bench->rounds; round++)
        for (size_t i = 0; i < bench->count; i++) {
            struct run *run = &bench->runs[i];
            if (run->unavailable[0])
                continue;
            if (!measure_round(bench, run, &run->samples[round]))
                return false;
            run->measured += !run->unavailable[0];
        }
    for (size_t i = 0; bench->profile && i < bench->count; i++)
        if (!profile(bench, &bench->runs[i]))
            return false;
    return true;
}

static json_t *document_of(const struct bench *bench)
{
    json_auto_t *ratios = json_array();
    for (size_t i = 0; i < bench->count; i++) {
        const struct run *run = &bench->runs[i];
        if (!run->unavailable[0] && run->measured == 0)
            continue; /* an interrupt came first */
        json_t *row = run->unavailable[0]
                          ? bench_case_unavailable_json(run->row, run->unavailable)
                          : bench_case_json(run->row, &run->tuning, run->samples, run->measured);
        if (json_array_append_new(ratios, row) != 0)
            return NULL;
    }
    json_t *document = result_new("bench",
                                  json_pack("{s:I, s:I, s:I, s:I, s:f}", "rounds", (json_int_t)bench->rounds,
                                            "duration_ms", (json_int_t)bench->duration_ms, "connections",
                                            (json_int_t)bench->testbed.connections, "workers",
                                            (json_int_t)bench->workers, "load_average", bench->load_average));
    if (json_object_set(document, "ratios", ratios) == 0)
        return document;
    json_decref(document);
    return NULL;
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

static int run(void *context)
{
    struct bench *bench = context;
    if (getloadavg(&bench->load_average, 1) != 1)
        bench->load_average = 0;
    bench->progress = progress_begin(steps_of(bench));
    bench->testbed.progress = &bench->progress;
    bench->testbed.seconds = bench->duration_ms / 1000;
    bench->testbed.connections = bench->connections ? bench->connections : WRK_CONNECTIONS;
    bench->testbed.workers = bench->workers;
    progress_label(&bench->progress, "starting the servers");
    if (!open_testbed(bench))
        return ENDED_ENVIRONMENT;
    bool measured = measure_all(bench);
    progress_wipe();
    bench_testbed_close(&bench->testbed);
    if (!measured && (!interrupted() || bench->runs[0].measured == 0))
        return bench->testbed.broken ? ENDED_BROKEN : ENDED_ENVIRONMENT;

    json_auto_t *document = document_of(bench);
    if (!document)
        complain("out of memory");
    return document && output_write(&bench_result, document, &bench->output) ? ENDED_AS_EXPECTED
                                                                             : ENDED_ENVIRONMENT;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "bench",
            .operands = "",
            .summary =
                "Measures how close the service, as shipped, is to the limits of its database and lock servers.\n"
                "\n"
                "Each ratio compares the service with a simpler program, such as pgbench with the same "
                "SQL. The service has its default settings. The tuned columns show it with its best number of "
                "workers. The command measures both sides in turn, and prints the median, the minimum and the "
                "maximum. A missed goal or a missing lock server is reported, but is not an error.",
            .example = "loadtest bench --only 'hot/*'",
            .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
        },
    .begin = begin,
    .run_alone = run,
};

int bench_main(int argc, char **argv)
{
    static struct bench bench = {.rounds = 3, .duration_ms = 2000, .output = OUTPUT_DEFAULTS};
    return run_command(&COMMAND, argc, argv, &bench);
}
