/* `loadtest explore shop.json`: runs a few requests to a user's service in every sequence in which their statements can follow each
 * other, and looks for a sequence that oversells. The search is that of the explorer (explore/core/depth_first_search.h). */
#include "base/clock.h"
#include "db/postgres/connection.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/command/run_command.h"
#include "loadtest/explore/core/depth_first_search.h"
#include "loadtest/own/check_row.h"
#include "loadtest/own/request_runner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAYS = 10, REPLAY_TRIES = 3, DIFFERS_MOST = 10, SCHEDULE_TEXT = 1600, LIBPQ_MAX = 8 };

struct counterexample {
    enum verdict verdict;
    struct transition transitions[DEPTH_MAX];
    size_t length;
    unsigned switches;
};

struct explore_own {
    const char *path;
    struct shop_description description;
    int64_t stock, requests, instances, max_schedules, time_limit_ms;
    struct texts env;
    struct shop_servers servers;
    struct shop_service service;
    struct shop_database *database;
    struct shop_stock before; /* after a reset */
    char gate_url[1024];      /* what {postgres} is for the service */
    const char *format;
    struct gate *gate;
    struct request_runner *runner;
    struct search search;
    int64_t schedules, differed, found[VERDICT_COUNT], deadlocks, us;
    struct counterexample worst;
    struct run_record shown; /* of the worst */
    int64_t reproduced;
};

#define AT(member) offsetof(struct explore_own, member)

static const char *const FORMATS[] = {"text", "json", NULL};
static const struct option_row ROWS[] = {
    {"--stock", "S", OPTION_NUMBER, AT(stock), 1, 1000, NULL, "Units in stock when a schedule begins."},
    {"--requests", "N", OPTION_NUMBER, AT(requests), 2, ACTORS_MAX, NULL, "Requests at the same time."},
    {"--instances", "N", OPTION_NUMBER, AT(instances), 1, INSTANCES_MAX, NULL,
     "Instances of the service to start; the requests go to one after the other."},
    {"--env", "NAME=VALUE", OPTION_TEXTS, AT(env), 0, 0, NULL,
     "Environment variable of the instances, in place of the description's. Repeat the option for more."},
    {"--max-schedules", "N", OPTION_NUMBER, AT(max_schedules), 1, 10000000, NULL,
     "Stop after as many schedules."},
    {"--time-limit", "T", OPTION_DURATION, AT(time_limit_ms), 1000, 86400000, NULL, "Stop after this time."},
    {"--format", "FORMAT", OPTION_CHOICE, AT(format), 0, 0, FORMATS, "How to print the result."},
};
static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

/* ---- the gate ------------------------------------------------------------------------------------------------------- */

/* Writes URL with the gate's address in place of the server's. False: it has another form. */
static bool point_to_gate(const char *url, unsigned port, char *ret_url, size_t size)
{
    const char *scheme = strstr(url, "://");
    if (!scheme)
        return false;
    const char *begin = scheme + 3, *end = begin + strcspn(begin, "/?"), *host = begin;
    for (const char *at = begin; at < end; at++)
        if (*at == '@')
            host = at + 1;
    int length = snprintf(ret_url, size, "%.*s127.0.0.1:%u%s", (int)(host - url), url, port, end);
    return length > 0 && (size_t)length < size;
}

static bool open_gate(struct explore_own *explore)
{
    const char *url = explore->servers.postgres;
    struct gate_server server = {&postgres_protocol, "127.0.0.1", postgres_protocol.port};
    char *variables[LIBPQ_MAX + 1] = {0};
    bool is_read = db_url_environment(url, variables, LIBPQ_MAX);
    for (size_t i = 0; variables[i]; i++) {
        server.host = strncmp(variables[i], "PGHOST=", 7) == 0 ? variables[i] + 7 : server.host;
        server.port = strncmp(variables[i], "PGPORT=", 7) == 0 ? variables[i] + 7 : server.port;
    }
    explore->gate = is_read ? gate_open(&server, 1) : NULL;
    for (size_t i = 0; variables[i]; i++)
        free(variables[i]);
    if (!explore->gate)
        return false;
    if (point_to_gate(url, gate_port(explore->gate, 0), explore->gate_url, sizeof explore->gate_url))
        return true;
    complain("database: explore needs an address of the form postgresql://USER:PASSWORD@HOST:PORT/NAME");
    return false;
}

/* ---- one schedule --------------------------------------------------------------------------------------------------- */

static bool start(void *self)
{
    return runner_start(((struct explore_own *)self)->runner);
}

static size_t enabled(void *self, struct transition *ret_transitions)
{
    return runner_enabled(((struct explore_own *)self)->runner, ret_transitions);
}

static bool apply(void *self, struct transition transition)
{
    return runner_apply(((struct explore_own *)self)->runner, transition.actor);
}

static bool end(void *self)
{
    return runner_end(((struct explore_own *)self)->runner);
}

static uint64_t fingerprint(void *self)
{
    return runner_fingerprint(((struct explore_own *)self)->runner);
}

static enum verdict judge(const struct explore_own *explore, const struct run_record *record)
{
    int64_t acknowledged = 0, unclear = 0;
    for (int64_t i = 0; i < explore->requests; i++) {
        long status = record->answers[i].status;
        bool sold = status >= 200 && status < 300;
        acknowledged += sold;
        unclear += !sold && !shop_is_sold_out(&explore->description, status);
    }
    const struct check_counts counts = check_counts_of(&explore->description, &explore->before,
                                                       &record->after, acknowledged, unclear);
    enum verdict verdict = check_verdict(&counts);
    return record->stuck && verdict < VERDICT_STUCK ? VERDICT_STUCK : verdict;
}

enum repetition { REPEATED, ENDED_OTHERWISE, NOT_FOLLOWED };

/* Runs the schedule of a counterexample once more. NOT_FOLLOWED: a request was not held where it was before. */
static enum repetition repeat(struct explore_own *explore)
{
    struct transition choices[ENABLED_MAX];
    const struct counterexample *worst = &explore->worst;
    bool well = runner_start(explore->runner);
    for (size_t i = 0; i < worst->length && well; i++) {
        size_t count = runner_enabled(explore->runner, choices), at = 0;
        while (at < count && choices[at].actor != worst->transitions[i].actor)
            at++;
        well = at < count && runner_apply(explore->runner, choices[at].actor);
    }
    if (!runner_end(explore->runner) || !well)
        return NOT_FOLLOWED;
    return judge(explore, runner_record(explore->runner)) == worst->verdict ? REPEATED : ENDED_OTHERWISE;
}

/* The last repetition reads the stock after each transaction, and is shown. */
static void repeat_worst(struct explore_own *explore)
{
    for (int i = 0; i < REPLAYS && !interrupted(); i++) {
        enum repetition made = NOT_FOLLOWED;
        runner_set(explore->runner, (size_t)explore->requests, i + 1 == REPLAYS);
        /* On a slow machine a request can seem to wait in the program: then the schedule cannot be followed. */
        for (int tries = 0; tries < REPLAY_TRIES && made == NOT_FOLLOWED && !interrupted(); tries++) {
            made = repeat(explore);
            explore->differed += made == NOT_FOLLOWED;
        }
        explore->reproduced += made == REPEATED;
    }
    explore->shown = *runner_record(explore->runner);
}

static void keep_worst(struct explore_own *explore, enum verdict verdict)
{
    const struct search *search = &explore->search;
    struct counterexample next = {.verdict = verdict, .length = search->length};
    for (size_t i = 0; i < search->length; i++)
        next.transitions[i] = search->path[i].transitions[search->path[i].taken];
    next.switches = context_switches(next.transitions, next.length);
    const struct counterexample *worst = &explore->worst;
    if (verdict > worst->verdict || (verdict == worst->verdict && next.switches < worst->switches))
        explore->worst = next;
}

/* ---- the search --------------------------------------------------------------------------------------------------------- */

/* The path of the schedule that has just run is needed after search_run has moved on, so its end keeps it. */
static bool end_and_judge(void *self)
{
    struct explore_own *explore = self;
    if (!end(self))
        return false;
    const struct run_record *record = runner_record(explore->runner);
    enum verdict verdict = judge(explore, record);
    explore->schedules++;
    explore->found[verdict]++;
    explore->deadlocks += record->deadlock;
    if (verdict != VERDICT_CLEAN)
        keep_worst(explore, verdict);
    return true;
}

/* Runs the first schedule, which is that of the lowest requests first. */
static bool run_first(struct explore_own *explore)
{
    struct transition choices[ENABLED_MAX];
    bool well = runner_start(explore->runner);
    while (well && runner_enabled(explore->runner, choices) > 0)
        well = runner_apply(explore->runner, choices[0].actor);
    return well && runner_end(explore->runner);
}

/* One request alone, to see that the service works and to measure how long it is silent; then all, so that pools fill. */
static bool warm_up(struct explore_own *explore)
{
    runner_set(explore->runner, 1, false);
    for (int i = 0; i < 2; i++) /* the first may open connections */
        if (!run_first(explore))
            return false;
    const struct run_record *record = runner_record(explore->runner);
    if (record->count == 0)
        complain(
            "no statement has come through the gate; the service must connect to the address {postgres}, or as PGHOST and "
            "PGPORT say. Its answer was %ld: %s",
            record->answers[0].status, record->answers[0].text);
    else if (record->after.sold == explore->before.sold)
        complain(
            "request: no order was placed; the answer is %ld: %s. Check url, body and headers of request",
            record->answers[0].status, record->answers[0].text);
    runner_measure(explore->runner);
    runner_set(explore->runner, (size_t)explore->requests, false);
    return record->count > 0 && record->after.sold > explore->before.sold && run_first(explore);
}

static bool search_all(struct explore_own *explore)
{
    const struct program program = {.self = explore,
                                    .start = start,
                                    .enabled = enabled,
                                    .apply = apply,
                                    .end = end_and_judge,
                                    .fingerprint = fingerprint};
    int64_t begin = monotonic_us(), limit = begin + explore->time_limit_ms * 1000;
    enum search_outcome outcome = SEARCH_RAN;
    explore->search.bound = NO_BOUND;
    while (outcome == SEARCH_RAN && !interrupted() && monotonic_us() < limit &&
           explore->schedules < explore->max_schedules) {
        outcome = search_run(&explore->search, &program);
        /* A slow machine may be the cause: the same schedule again, a few times. */
        if (outcome == SEARCH_DIFFERS && explore->differed++ < DIFFERS_MOST && runner_end(explore->runner))
            outcome = SEARCH_RAN;
    }
    explore->us = monotonic_us() - begin;
    if (outcome == SEARCH_DIFFERS)
        complain(
            "%s: the service sent other statements when a schedule was repeated. Turn off what depends on chance or time",
            explore->search.error);
    return (outcome == SEARCH_RAN || outcome == SEARCH_DONE) && !interrupted();
}

/* ---- output ------------------------------------------------------------------------------------------------------------ */

/* `A>2 B>end A>end`: A runs its first two statements, then B runs to its end, then A. */
static const char *schedule_words(const struct explore_own *explore, char text[static SCHEDULE_TEXT])
{
    const struct counterexample *worst = &explore->worst;
    unsigned done[ACTORS_MAX] = {0}, all[ACTORS_MAX] = {0};
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < worst->length; i++)
        all[worst->transitions[i].actor]++;
    for (size_t i = 0; i < worst->length && length + 16 < SCHEDULE_TEXT; i++) {
        unsigned actor = worst->transitions[i].actor;
        done[actor]++;
        if (i + 1 < worst->length && worst->transitions[i + 1].actor == actor)
            continue;
        length += (size_t)snprintf(text + length, SCHEDULE_TEXT - length, "%s%c>", length ? " " : "",
                                   'A' + (char)actor);
        length += (size_t)(done[actor] == all[actor]
                               ? snprintf(text + length, SCHEDULE_TEXT - length, "end")
                               : snprintf(text + length, SCHEDULE_TEXT - length, "%u", done[actor]));
    }
    return text;
}

static void print_step(const struct run_step *step, size_t number)
{
    printf("%3zu  %c  %s\n", number, 'A' + (char)step->actor, step->text);
    if (step->after == REQUEST_BLOCKED) {
        printf("        waits for");
        for (unsigned i = 0; i < ACTORS_MAX; i++)
            if (step->blockers & 1U << i)
                printf(" %c", 'A' + (char)i);
        printf("%s\n", step->blockers & 1U << ACTORS_MAX ? " a session of no request" : "");
    } else if (*step->answer) {
        printf("        → %s\n", step->answer);
    }
    if (step->has_stock)
        printf("        stock %" PRId64 ", sold %" PRId64 "\n", step->stock.left, step->stock.sold);
}

static void print_text(const struct explore_own *explore)
{
    char words[SCHEDULE_TEXT];
    const struct counterexample *worst = &explore->worst;
    printf("%s: %s\n\n", explore->path, verdict_name(worst->verdict));
    printf("%" PRId64 " schedules of %" PRId64 " requests for a stock of %" PRId64
           ", %.4g %% of the sequences of their statements; %.0f schedules/s\n",
           explore->schedules, explore->requests, explore->stock, 100 * search_coverage(&explore->search),
           (double)explore->schedules * 1e6 / (double)(explore->us + 1));
    for (int i = 0; i < VERDICT_COUNT; i++)
        if (explore->found[i])
            printf("  %-18s%" PRId64 "\n", verdict_name((enum verdict)i), explore->found[i]);
    if (explore->deadlocks)
        printf("  %" PRId64 " of them had a deadlock\n", explore->deadlocks);
    printf("A request that is silent for %" PRId64 " ms counts as waiting in the program.\n",
           runner_quiet_ms(explore->runner));
    if (explore->description.uses_redis)
        printf("Commands to Redis are not held, so sequences that differ only in them were not run.\n");
    if (explore->differed)
        printf("%" PRId64 " repetitions sent other statements than before, and ran again.\n",
               explore->differed);
    if (worst->verdict == VERDICT_CLEAN)
        return;
    printf("\nThe counterexample with the fewest switches: %s\nReplayed %" PRId64 " of %d times.\n\n",
           schedule_words(explore, words), explore->reproduced, REPLAYS);
    for (size_t i = 0; i < explore->shown.count; i++)
        print_step(&explore->shown.steps[i], i + 1);
    printf("\n");
    for (int64_t i = 0; i < explore->requests; i++)
        printf("%c was answered %ld. ", 'A' + (char)i, explore->shown.answers[i].status);
    printf("Sold %" PRId64 " of %" PRId64 ", %" PRId64 " left.\n", explore->shown.after.sold, explore->stock,
           explore->shown.after.left);
}

static bool print_json(const struct explore_own *explore)
{
    char words[SCHEDULE_TEXT];
    const struct counterexample *worst = &explore->worst;
    json_auto_t *document = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:b, s:I, s:I, s:f, s:I, s:{}, s:n}", "kind", "explore-own",
        "description", explore->path, "verdict", verdict_name(worst->verdict), "requests",
        (json_int_t)explore->requests, "stock", (json_int_t)explore->stock, "schedules",
        (json_int_t)explore->schedules, "coverage", search_coverage(&explore->search), "complete",
        explore->search.done, "deadlocks", (json_int_t)explore->deadlocks, "quiet_ms",
        (json_int_t)runner_quiet_ms(explore->runner), "seconds", (double)explore->us / 1e6, "instances",
        (json_int_t)explore->instances, "verdicts", "counterexample");
    bool well = document != NULL;
    for (int i = 0; i < VERDICT_COUNT && well; i++)
        well = json_object_set_new(json_object_get(document, "verdicts"), verdict_name((enum verdict)i),
                                   json_integer(explore->found[i])) == 0;
    if (well && worst->verdict != VERDICT_CLEAN) {
        json_t *steps = json_array();
        for (size_t i = 0; i < explore->shown.count && well; i++) {
            const struct run_step *step = &explore->shown.steps[i];
            const char actor[] = {(char)('A' + step->actor), '\0'};
            json_t *row = json_pack("{s:s, s:s, s:s, s:b}", "actor", actor, "text", step->text, "answer",
                                    step->answer, "waits", step->after == REQUEST_BLOCKED);
            well = row && json_array_append_new(steps, row) == 0;
            if (well && step->has_stock)
                well = json_object_set_new(row, "stock", json_integer((json_int_t)step->stock.left)) == 0 &&
                       json_object_set_new(row, "sold", json_integer((json_int_t)step->stock.sold)) == 0;
        }
        well = json_object_set_new(
                   document, "counterexample",
                   json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "schedule", schedule_words(explore, words),
                             "switches", (json_int_t)worst->switches, "reproduced",
                             (json_int_t)explore->reproduced, "sold", (json_int_t)explore->shown.after.sold,
                             "left", (json_int_t)explore->shown.after.left, "steps", steps)) == 0 &&
               well;
    }
    well = well && json_dumpf(document, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF;
    if (!well)
        complain("cannot write the result: out of memory, or the output is closed");
    return well;
}

/* ---- the command ---------------------------------------------------------------------------------------------------------- */

static int begin(void *context, const struct texts *operands)
{
    struct explore_own *explore = context;
    explore->path = operands->item[0];
    if (!shop_description_read(explore->path, &explore->description))
        return ENDED_USAGE;
    if (!explore->description.start[0])
        complain("%s: explore has to start the service, so that it connects to the gate; add start",
                 explore->path);
    else if (shop_can_have_env(&explore->description, &explore->env) &&
             shop_can_have_instances(&explore->description, (size_t)explore->instances))
        return COMMAND_GOES_ON;
    shop_description_free(&explore->description);
    return ENDED_USAGE;
}

static bool explore_service(struct explore_own *explore)
{
    struct runner_settings settings = {.service = &explore->service,
                                       .database = explore->database,
                                       .gate = explore->gate,
                                       .requests = (size_t)explore->requests,
                                       .stock = explore->stock};
    explore->runner = runner_open(&settings);
    bool well = explore->runner &&
                shop_service_restock(&explore->service, explore->database, explore->stock,
                                     &explore->before) &&
                warm_up(explore) && search_all(explore);
    if (well && explore->worst.verdict != VERDICT_CLEAN)
        repeat_worst(explore);
    if (well && strcmp(explore->format, "json") == 0)
        well = print_json(explore);
    else if (well)
        print_text(explore);
    runner_close(explore->runner);
    return well;
}

static int run(void *context)
{
    struct explore_own *explore = context;
    bool well = false;
    if (shop_servers_open(&explore->description, &explore->servers)) {
        const struct shop_plan plan = {.description = &explore->description,
                                       .folder = explore->servers.testbed.dir,
                                       .postgres = explore->gate_url,
                                       .redis = explore->servers.redis,
                                       .instances = (size_t)explore->instances,
                                       .env = &explore->env};
        explore->database = shop_database_open(explore->servers.postgres, &explore->description,
                                               explore->stock);
        if (explore->database && open_gate(explore) && shop_service_start(&plan, &explore->service)) {
            well = explore_service(explore);
            shop_service_stop(&explore->service);
        }
        shop_database_close(explore->database);
        gate_close(explore->gate);
        shop_servers_close(&explore->servers);
    }
    shop_description_free(&explore->description);
    if (!well)
        return ENDED_ENVIRONMENT;
    return explore->worst.verdict == VERDICT_CLEAN ? ENDED_AS_EXPECTED : ENDED_BROKEN;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "explore",
            .operands = "FILE.json",
            .min_operands = 1,
            .max_operands = 1,
            .summary =
                "Runs two requests to your own service in every sequence of their SQL statements.\n"
                "\n"
                "FILE.json describes the service; `loadtest init` writes an example. The service is not changed: it connects to "
                "a gate in front of PostgreSQL, which holds each statement. Commands to Redis are not held. Exit status 1: a "
                "schedule was not clean.",
            .example = "loadtest explore shop.json",
            .groups = {{&OPTIONS, 0}},
        },
    .begin = begin,
    .run_alone = run,
};

int explore_own_main(int argc, char **argv)
{
    static struct explore_own explore = {
        .stock = 1,
        .requests = 2,
        .max_schedules = 100000,
        .time_limit_ms = 600000,
        .instances = 1,
        .worst = {.verdict = VERDICT_CLEAN},
        .format = "text",
    };
    return run_command(&COMMAND, argc, argv, &explore);
}
