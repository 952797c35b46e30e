/* `loadtest explore shop.json`: runs a few requests to a user's service in every sequence in which their statements can follow each
 * other, and looks for a sequence that oversells. The search is that of the explorer (explore/core/depth_first_search.h). */
#include "base/clock.h"
#include "db/postgres/connection.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/command/run_command.h"
#include "loadtest/explore/core/depth_first_search.h"
#include "loadtest/own/check_row.h"
#include "loadtest/own/schedules/explore_own_result.h"
#include "loadtest/own/schedules/request_runner.h"
#include "loadtest/own/schedules/saved_schedule.h"
#include "loadtest/own/schedules/schedule_text.h"
#include "loadtest/report/result.h"
#include "lock/redis/client/url.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAYS = 10, REPLAY_TRIES = 3, DIFFERS_MOST = 10, SHOWN_MAX = 10, LIBPQ_MAX = 8 };

struct counterexample {
    enum verdict verdict;
    struct transition transitions[DEPTH_MAX];
    size_t length;
    unsigned switches;
};

struct explore_own {
    const char *path;
    struct shop_description description;
    int64_t stock, requests, instances, max_schedules, time_limit_ms, show;
    const char *replay, *save;
    struct texts env;
    struct output_settings output;
    bool prints;                 /* the table goes to stdout, and the schedules below it */
    struct saved_schedule saved; /* that --replay names */
    struct schedule schedule;    /* to replay; empty: all are searched */
    struct shop_servers servers;
    struct shop_service service;
    struct shop_database *database;
    struct shop_stock before; /* after a reset */
    char gate_url[1024];      /* what {postgres} is for the service */
    char redis_url[1024];     /* and {redis} */
    struct redis_control *redis;
    const char *faults, *expire_key;
    bool faulted; /* in one of the schedules */
    struct gate *gate;
    struct request_runner *runner;
    struct search search;
    int64_t schedules, differed, found[VERDICT_COUNT], deadlocks, us;
    struct counterexample worst[SHOWN_MAX]; /* the worst verdict and the fewest switches first */
    size_t worst_count;
    struct counterexample
        simplest[VERDICT_COUNT]; /* the schedule with the fewest switches; as many as FOUND says, 0: none */
};

#define AT(member) offsetof(struct explore_own, member)

/* Names of enum transition_kind. */
static const char *const FAULTS[] = {"none", "expire", "crash", "cut", NULL};
static const enum transition_kind FAULT_KINDS[] = {TRANSITION_STEP, TRANSITION_EXPIRE, TRANSITION_CRASH,
                                                   TRANSITION_CUT};
static const struct option_row ROWS[] = {
    {"--stock", "S", OPTION_NUMBER, AT(stock), 1, 1000, NULL, "Units in stock when a schedule begins."},
    {"--requests", "N", OPTION_NUMBER, AT(requests), 2, ACTORS_MAX, NULL, "Requests at the same time."},
    {"--instances", "N", OPTION_NUMBER, AT(instances), 1, INSTANCES_MAX, NULL,
     "Instances of the service to start. The command sends request A to the first, B to the second, and so on."},
    {"--env", "NAME=VALUE", OPTION_TEXTS, AT(env), 0, 0, NULL,
     "An environment variable of the service, instead of the one in FILE. Repeat the option for more."},
    {"--faults", "WHICH", OPTION_CHOICE, AT(faults), 0, 0, FAULTS,
     "A fault that happens once in each schedule, at any point.\n"
     "expire: the gate deletes a key that a request holds in Redis as a lock.\n"
     "crash: the gate closes the connections of a request, and none of its later statements reaches a server.\n"
     "cut: PostgreSQL executes a COMMIT, and the gate closes the connection before the answer."},
    {"--expire-key", "PATTERN", OPTION_TEXT, AT(expire_key), 0, 0, NULL,
     "With --faults expire: the keys that are locks, such as 'lock:*'. Without this option: keys with an expiry that "
     "SET with NX, SETNX, a hash command or a script has created."},
    {"--max-schedules", "N", OPTION_NUMBER, AT(max_schedules), 1, 10000000, NULL, "Stop after N schedules."},
    {"--time-limit", "T", OPTION_DURATION, AT(time_limit_ms), 1000, 86400000, NULL, "Stop after this time."},
    {"--show", "N", OPTION_NUMBER, AT(show), 0, SHOWN_MAX, NULL,
     "Print up to N counterexamples, the simplest first, with a column for each request."},
    {"--save", "DIR", OPTION_TEXT, AT(save), 0, 0, NULL,
     "Write the first counterexample to a file in DIR, for --replay in the tests of the service."},
    {"--replay", "WHAT", OPTION_TEXT, AT(replay), 0, 0, NULL,
     "Run one schedule only: a file from --save, or steps such as 'A>1 B>end A>end'. If a request has to wait, the "
     "next step begins."},
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

/* For the gate, from the address of Redis. */
static bool open_redis(struct explore_own *explore, struct redis_url *ret_url)
{
    const char *url = explore->servers.redis, *why = "";
    char reason[300];
    if (!redis_url_read(url, strlen(url), ret_url, &why))
        snprintf(reason, sizeof reason, "%s", why);
    else
        explore->redis = redis_control_open(url, reason, sizeof reason);
    if (!explore->redis)
        shop_complain(&explore->description, explore->description.redis ? "redis" : "",
                      "needs a Redis that explore can use: %s. Start Redis, or correct the address", reason);
    return explore->redis != NULL;
}

static bool open_gate(struct explore_own *explore)
{
    const char *url = explore->servers.postgres, *redis = explore->servers.redis;
    struct gate_server servers[] = {
        [RUNS_POSTGRES] = {&postgres_protocol, "127.0.0.1", postgres_protocol.port},
        [RUNS_REDIS] = {&redis_protocol},
    };
    struct redis_url redis_url;
    char *variables[LIBPQ_MAX + 1] = {0};
    if (redis && !open_redis(explore, &redis_url))
        return false;
    servers[RUNS_REDIS].host = redis_url.host;
    servers[RUNS_REDIS].port = redis_url.port;
    bool is_read = db_url_environment(url, variables, LIBPQ_MAX);
    for (size_t i = 0; variables[i]; i++) {
        if (strncmp(variables[i], "PGHOST=", 7) == 0)
            servers[RUNS_POSTGRES].host = variables[i] + 7;
        if (strncmp(variables[i], "PGPORT=", 7) == 0)
            servers[RUNS_POSTGRES].port = variables[i] + 7;
    }
    explore->gate = is_read ? gate_open(servers, redis ? 2 : 1) : NULL;
    for (size_t i = 0; variables[i]; i++)
        free(variables[i]);
    if (!explore->gate)
        return false;
    if (!point_to_gate(url, gate_port(explore->gate, RUNS_POSTGRES), explore->gate_url,
                       sizeof explore->gate_url))
        complain("database: explore needs an address of the form postgresql://USER:PASSWORD@HOST:PORT/NAME");
    else if (redis && !point_to_gate(redis, gate_port(explore->gate, RUNS_REDIS), explore->redis_url,
                                     sizeof explore->redis_url))
        complain("redis: explore needs an address of the form redis://USER:PASSWORD@HOST:PORT/NUMBER");
    else
        return true;
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
    return runner_apply(((struct explore_own *)self)->runner, transition);
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
static enum repetition repeat(struct explore_own *explore, const struct counterexample *worst)
{
    struct transition choices[ENABLED_MAX];
    bool well = runner_start(explore->runner);
    for (size_t i = 0; i < worst->length && well; i++) {
        size_t count = runner_enabled(explore->runner, choices), at = 0;
        while (at < count && memcmp(&choices[at], &worst->transitions[i], sizeof choices[at]) != 0)
            at++;
        well = at < count && runner_apply(explore->runner, choices[at]);
    }
    if (!runner_end(explore->runner) || !well)
        return NOT_FOLLOWED;
    return judge(explore, runner_record(explore->runner)) == worst->verdict ? REPEATED : ENDED_OTHERWISE;
}

/* Repeats a counterexample as often, and returns it as it is shown; the last repetition reads the stock after each transaction. NULL, having
 * said why on stderr. */
static json_t *show(struct explore_own *explore, const struct counterexample *worst, int repetitions)
{
    char words[SCHEDULE_TEXT];
    int64_t reproduced = 0;
    for (int i = 0; i < repetitions && !interrupted(); i++) {
        enum repetition made = NOT_FOLLOWED;
        runner_set(explore->runner, (size_t)explore->requests, i + 1 == repetitions);
        /* On a slow machine a request can seem to wait in the program: then the schedule cannot be followed. */
        for (int tries = 0; tries < REPLAY_TRIES && made == NOT_FOLLOWED && !interrupted(); tries++) {
            made = repeat(explore, worst);
            explore->differed += made == NOT_FOLLOWED;
        }
        reproduced += made == REPEATED;
    }
    json_t *shown = explored_schedule(runner_record(explore->runner),
                                      schedule_write(worst->transitions, worst->length, words),
                                      (size_t)explore->requests, worst->verdict);
    if (shown && json_object_set_new(shown, "switches", json_integer(worst->switches)) == 0 &&
        json_object_set_new(shown, "replays", json_integer(repetitions)) == 0 &&
        json_object_set_new(shown, "reproduced", json_integer((json_int_t)reproduced)) == 0)
        return shown;
    complain("out of memory");
    json_decref(shown);
    return NULL;
}

static bool is_worse(const struct counterexample *one, const struct counterexample *other)
{
    return one->verdict > other->verdict ||
           (one->verdict == other->verdict && one->switches < other->switches);
}

static void keep(struct explore_own *explore, enum verdict verdict)
{
    const struct search *search = &explore->search;
    struct counterexample next = {.verdict = verdict, .length = search->length};
    for (size_t i = 0; i < search->length; i++)
        next.transitions[i] = search->path[i].transitions[search->path[i].taken];
    next.switches = context_switches(next.transitions, next.length);
    if (explore->found[verdict]++ == 0 || next.switches < explore->simplest[verdict].switches)
        explore->simplest[verdict] = next;
    size_t at = explore->worst_count;
    while (at > 0 && is_worse(&next, &explore->worst[at - 1]))
        at--;
    if (verdict == VERDICT_CLEAN || at == SHOWN_MAX)
        return;
    explore->worst_count += explore->worst_count < SHOWN_MAX;
    memmove(&explore->worst[at + 1], &explore->worst[at], (explore->worst_count - 1 - at) * sizeof next);
    explore->worst[at] = next;
}

/* ---- one schedule that the user names ------------------------------------------------------------------------------ */

static bool is_enabled(struct explore_own *explore, struct transition transition)
{
    struct transition choices[ENABLED_MAX];
    size_t count = runner_enabled(explore->runner, choices);
    for (size_t i = 0; i < count; i++)
        if (choices[i].actor == transition.actor && choices[i].kind == transition.kind)
            return true;
    return false;
}

static bool run_one(struct explore_own *explore, struct transition transition, struct counterexample *ran)
{
    ran->transitions[ran->length++] = transition;
    return runner_apply(explore->runner, transition);
}

/* Runs the schedule as far as the requests can follow it, and then the rest of each. A request that has been changed may send fewer
 * statements, or wait. RAN gets the transitions that ran. */
static bool follow(struct explore_own *explore, struct counterexample *ran)
{
    struct transition choices[ENABLED_MAX];
    unsigned done[ACTORS_MAX] = {0};
    bool well = runner_start(explore->runner);
    for (size_t i = 0; i < explore->schedule.count; i++) {
        const struct schedule_part *part = &explore->schedule.parts[i];
        const struct transition next = {part->actor, part->kind};
        bool is_step = part->kind == TRANSITION_STEP;
        for (bool goes_on = true; goes_on && well && ran->length < DEPTH_MAX; goes_on = is_step) {
            if ((is_step && done[part->actor] >= part->upto) || !is_enabled(explore, next))
                break;
            well = run_one(explore, next, ran);
            done[part->actor] += is_step;
        }
    }
    while (well && ran->length < DEPTH_MAX && runner_enabled(explore->runner, choices) > 0 &&
           choices[0].kind == TRANSITION_STEP)
        well = run_one(explore, choices[0], ran);
    return runner_end(explore->runner) && well;
}

static bool replay(struct explore_own *explore, json_t **ret_shown)
{
    char words[SCHEDULE_TEXT];
    struct counterexample ran = {0};
    int64_t begin = monotonic_us();
    runner_set(explore->runner, (size_t)explore->requests, true);
    if (!follow(explore, &ran))
        return false;
    const struct run_record *record = runner_record(explore->runner);
    explore->us = monotonic_us() - begin;
    explore->schedules = 1;
    explore->deadlocks = record->deadlock;
    ran.verdict = judge(explore, record);
    explore->found[ran.verdict] = 1;
    explore->simplest[ran.verdict] = ran;
    *ret_shown = explored_schedule(record, schedule_write(ran.transitions, ran.length, words),
                                   (size_t)explore->requests, ran.verdict);
    if (!*ret_shown)
        complain("out of memory");
    return *ret_shown;
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
    explore->deadlocks += record->deadlock;
    explore->faulted |= record->could_fault;
    keep(explore, verdict);
    return true;
}

/* Runs the first schedule, which is that of the lowest requests first. */
static bool run_first(struct explore_own *explore)
{
    struct transition choices[ENABLED_MAX];
    bool well = runner_start(explore->runner);
    while (well && runner_enabled(explore->runner, choices) > 0 && choices[0].kind == TRANSITION_STEP)
        well = runner_apply(explore->runner, choices[0]);
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

/* A row for each verdict that was found, the worst first. */
static json_t *rows_of(const struct explore_own *explore)
{
    char words[SCHEDULE_TEXT];
    json_t *rows = json_array();
    bool well = rows != NULL;
    for (int i = VERDICT_COUNT - 1; i >= 0 && well; i--) {
        const struct counterexample *simplest = &explore->simplest[i];
        if (explore->found[i])
            well = json_array_append_new(
                       rows, json_pack("{s:s, s:I, s:f, s:s}", "verdict", verdict_name((enum verdict)i),
                                       "schedules", (json_int_t)explore->found[i], "share",
                                       (double)explore->found[i] / (double)explore->schedules, "schedule",
                                       schedule_write(simplest->transitions, simplest->length, words))) == 0;
    }
    if (well)
        return rows;
    json_decref(rows);
    return NULL;
}

static json_t *warnings_of(const struct explore_own *explore)
{
    json_t *warnings = json_array();
    const char *why =
        strcmp(explore->faults, "expire") == 0
            ? "No fault happened: no request held a key that looks like a lock. Name it with --expire-key."
            : "No fault happened: no request sent a statement at which it could.";
    bool says = !explore->replay && strcmp(explore->faults, "none") != 0 && !explore->faulted;
    if (!warnings || !says || json_array_append_new(warnings, json_string(why)) == 0)
        return warnings;
    json_decref(warnings);
    return NULL;
}

static enum verdict worst_of(const struct explore_own *explore)
{
    int worst = VERDICT_COUNT - 1;
    while (worst > VERDICT_CLEAN && explore->found[worst] == 0)
        worst--;
    return (enum verdict)worst;
}

/* SHOWN: an array of schedules. */
static json_t *document_of(const struct explore_own *explore, json_t *shown)
{
    json_t *settings = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:s?, s:s}", "file", explore->path, "stock",
        (json_int_t)explore->stock, "requests", (json_int_t)explore->requests, "instances",
        (json_int_t)explore->instances, "max_schedules", (json_int_t)explore->max_schedules, "time_limit_ms",
        (json_int_t)explore->time_limit_ms, "replay", explore->replay, "faults", explore->faults);
    json_t *document = result_new(explore_own_result.name, settings), *first = json_array_get(shown, 0);
    json_auto_t *found = json_pack(
        "{s:s, s:I, s:f, s:b, s:I, s:I, s:I, s:f, s:o, s:o, s:O?, s:O}", "verdict",
        verdict_name(worst_of(explore)), "schedules", (json_int_t)explore->schedules, "coverage",
        search_coverage(&explore->search), "complete", explore->search.done, "deadlocks",
        (json_int_t)explore->deadlocks, "differed", (json_int_t)explore->differed, "quiet_ms",
        (json_int_t)runner_quiet_ms(explore->runner), "seconds", (double)explore->us / 1e6, "rows",
        rows_of(explore), "warnings", warnings_of(explore), "counterexample", first, "counterexamples",
        shown);
    if (document && found && json_object_update(document, found) == 0)
        return document;
    complain("out of memory");
    json_decref(document);
    return NULL;
}

static bool save(const struct explore_own *explore, const json_t *found)
{
    const struct saved_schedule settings = {.stock = explore->stock,
                                            .requests = explore->requests,
                                            .instances = explore->instances,
                                            .env = explore->env,
                                            .expire_key = explore->expire_key};
    char path[PATH_MAX];
    if (!explore->save || !found)
        return true;
    if (!saved_schedule_write(explore->save, explore->path, found, &settings, path, sizeof path))
        return false;
    if (explore->prints)
        printf("\nSaved. This command fails until the service is fixed:\n  loadtest explore %s --replay %s\n",
               explore->path, path);
    return true;
}

static bool print(struct explore_own *explore, json_t *shown)
{
    size_t i;
    json_t *schedule;
    json_auto_t *document = document_of(explore, shown);
    if (!document || !output_write(&explore_own_result, document, &explore->output))
        return false;
    if (explore->prints)
        json_array_foreach(shown, i, schedule) {
            if ((int64_t)i < explore->show || explore->replay)
                explored_print(stdout, schedule, i > 0 || explore->replay);
        }
    return save(explore, json_array_get(shown, 0));
}

/* ---- the command ---------------------------------------------------------------------------------------------------------- */

/* The fault of the schedule to replay is the one that may happen. */
static bool take_fault(struct explore_own *explore)
{
    unsigned count = 0;
    for (size_t i = 0; i < explore->schedule.count; i++) {
        uint8_t kind = explore->schedule.parts[i].kind;
        if (kind == TRANSITION_STEP)
            continue;
        for (size_t fault = 0; FAULTS[fault]; fault++)
            if (FAULT_KINDS[fault] == kind)
                explore->faults = FAULTS[fault];
        if (++count > 1 || strcmp(explore->faults, "none") == 0) {
            complain("--replay: a schedule has at most one fault, which is expire, crash or cut");
            return false;
        }
    }
    return true;
}

/* What --replay names: a file, or else words. */
static bool read_replay(struct explore_own *explore)
{
    char error[200];
    const char *words = explore->replay;
    if (!words)
        return true;
    if (!strchr(words, '>') && !strchr(words, '!')) {
        if (!saved_schedule_read(words, &explore->saved))
            return false;
        words = explore->saved.schedule;
        explore->stock = explore->saved.stock;
        explore->requests = explore->saved.requests;
        explore->instances = explore->saved.instances;
        if (explore->env.count == 0)
            explore->env = explore->saved.env;
        if (!explore->expire_key)
            explore->expire_key = explore->saved.expire_key;
    }
    if (!schedule_read(words, (size_t)explore->requests, &explore->schedule, error, sizeof error))
        complain("--replay: %s", error);
    else if (take_fault(explore))
        return true;
    saved_schedule_free(&explore->saved);
    return false;
}

static int begin(void *context, const struct texts *operands)
{
    struct explore_own *explore = context;
    explore->path = operands->item[0];
    explore->prints = strcmp(explore->output.format, "table") == 0 && !explore->output.output;
    if (!output_valid(&explore->output) || !read_replay(explore))
        return ENDED_USAGE;
    if (!shop_description_read(explore->path, &explore->description))
        return ENDED_USAGE;
    if (!explore->description.start[0])
        complain("%s: explore has to start the service, so that it connects to the gate; add start",
                 explore->path);
    else if (strcmp(explore->faults, "expire") == 0 && !explore->description.uses_redis)
        complain("--faults expire ends keys in Redis. Give the service the address {redis} in \"env\" of %s",
                 explore->path);
    else if (explore->expire_key && strcmp(explore->faults, "expire") != 0)
        complain("--expire-key needs --faults expire");
    else if (shop_can_have_env(&explore->description, &explore->env) &&
             shop_can_have_instances(&explore->description, (size_t)explore->instances))
        return COMMAND_GOES_ON;
    shop_description_free(&explore->description);
    return ENDED_USAGE;
}

/* Adds to SHOWN what is to be shown: the schedule of --replay, or the counterexamples of the search. */
static bool explore_all(struct explore_own *explore, json_t *shown)
{
    json_t *schedule = NULL;
    if (explore->replay)
        return replay(explore, &schedule) && json_array_append_new(shown, schedule) == 0;
    bool well = search_all(explore);
    size_t count = explore->show > 1 ? (size_t)explore->show : 1;
    for (size_t i = 0; i < explore->worst_count && i < count && well; i++) {
        schedule = show(explore, &explore->worst[i], i == 0 ? REPLAYS : 1);
        well = schedule && json_array_append_new(shown, schedule) == 0;
    }
    return well && !interrupted();
}

static bool explore_service(struct explore_own *explore)
{
    struct runner_settings settings = {.service = &explore->service,
                                       .database = explore->database,
                                       .gate = explore->gate,
                                       .redis = explore->redis,
                                       .redis_is_ours = !explore->description.redis,
                                       .expire_key = explore->expire_key,
                                       .requests = (size_t)explore->requests,
                                       .stock = explore->stock};
    for (size_t i = 0; FAULTS[i]; i++)
        if (strcmp(explore->faults, FAULTS[i]) == 0)
            settings.fault = FAULT_KINDS[i];
    explore->runner = runner_open(&settings);
    bool well = explore->runner &&
                shop_service_restock(&explore->service, explore->database, explore->stock,
                                     &explore->before) &&
                warm_up(explore);
    json_auto_t *shown = json_array();
    well = well && explore_all(explore, shown) && print(explore, shown);
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
                                       .redis = explore->servers.redis ? explore->redis_url : NULL,
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
        redis_control_close(explore->redis);
        shop_servers_close(&explore->servers);
    }
    shop_description_free(&explore->description);
    saved_schedule_free(&explore->saved);
    if (!well)
        return ENDED_ENVIRONMENT;
    return explore->found[VERDICT_CLEAN] == explore->schedules ? ENDED_AS_EXPECTED : ENDED_BROKEN;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "explore",
            .operands = "FILE.json",
            .min_operands = 1,
            .max_operands = 1,
            .summary =
                "Runs two requests to your own service in every sequence of their SQL statements and Redis commands.\n"
                "\n"
                "FILE.json describes the service; `loadtest init` writes an example. The service is not changed: it connects to "
                "a gate in front of PostgreSQL and Redis, which holds each statement and command. Exit status 1: a schedule "
                "was not clean.",
            .example = "loadtest explore shop.json",
            .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
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
        .faults = "none",
        .show = 1,
        .output = OUTPUT_DEFAULTS,
    };
    return run_command(&COMMAND, argc, argv, &explore);
}
