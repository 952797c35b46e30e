/* `loadtest explore shop.json`: runs a few requests to a user's service in every sequence in which their statements can follow each
 * other, and looks for a sequence that oversells. The search is that of the explorer (search/depth_first_search.h). */
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/command/run_command.h"
#include "loadtest/own/check_row.h"
#include "loadtest/own/schedules/explore_own_impl.h"
#include "loadtest/own/schedules/explore_own_result.h"
#include "loadtest/report/result.h"

#include <string.h>

enum { GRACE_MS = 3000 };
enum { REPLAYS = 10, SLOW_REPLAYS = 3 }; /* a replay with a shared connection starts the service again */

#define AT(member) offsetof(struct explore_own, member)

/* Names of enum transition_kind. */
static const char *const FAULTS[] = {"none", "expire", "crash", "cut", NULL};
static const enum transition_kind FAULT_KINDS[] = {TRANSITION_STEP, TRANSITION_EXPIRE, TRANSITION_CRASH,
                                                   TRANSITION_CUT};
static const char *const REDUCTIONS[] = {"auto", "tables", "none", NULL};
static const struct option_row ROWS[] = {
    {"--stock", "S", OPTION_NUMBER, AT(stock), 1, 1000, NULL,
     "Units in stock when a schedule begins. Without this option: enough for one request, and one unit less than is enough for another."},
    {"--requests", "N", OPTION_NUMBER, AT(requests), 2, ACTORS_MAX, NULL, "Requests at the same time."},
    {"--instances", "N", OPTION_NUMBER, AT(instances), 1, INSTANCES_MAX, NULL,
     "Instances of the service to start. The command sends request A to the first, B to the second, and so on."},
    {"--env", "NAME=VALUE", OPTION_TEXTS, AT(env), 0, 0, NULL,
     "An environment variable of the service, instead of the one in FILE. Repeat the option for more."},
    {"--occupied", "N", OPTION_NUMBER, AT(occupied), 0, OCCUPIERS_MAX, NULL,
     "With --replay: hold N further requests at their first statements, so that they occupy connections of the service's "
     "pool. A search tries this by itself, and a counterexample says how many it needs."},
    {"--frees", NULL, OPTION_FLAG, AT(frees), 0, 0, NULL,
     "With --occupied: close one of these connections when each request has sent a statement, so that the pool has another one."},
    {"--allow", "VERDICT", OPTION_TEXTS, AT(allow), 0, 0, NULL,
     "turned-away or failing: count it as clean, for a service that may refuse or fail. Repeat the option for both."},
    {"--faults", "WHICH", OPTION_CHOICE, AT(faults), 0, 0, FAULTS,
     "A fault that happens once in each schedule, at any point.\n"
     "expire: the gate deletes a key that a request holds in Redis as a lock, or runs \"expires\" of FILE in PostgreSQL.\n"
     "crash: the gate closes the connections of a request, and none of its later statements reaches a server.\n"
     "cut: PostgreSQL executes a COMMIT, and the gate closes the connection before the answer."},
    {"--expire-key", "PATTERN", OPTION_TEXT, AT(expire_key), 0, 0, NULL,
     "With --faults expire: the keys that are locks, such as 'lock:*'. Without this option: keys with an expiry that "
     "SET with NX, SETNX, a hash command or a script has created."},
    {"--reduce", "HOW", OPTION_CHOICE, AT(reduce), 0, 0, REDUCTIONS,
     "tables: run one of the schedules that differ only in the sequence of statements on different tables. It counts for all of them, as far "
     "as the requests share nothing but PostgreSQL. none: run every schedule. auto: tables, if every schedule would take too long."},
    {"--max-schedules", "N", OPTION_NUMBER, AT(max_schedules), 1, 10000000, NULL, "Stop after N schedules."},
    {"--time-limit", "T", OPTION_DURATION, AT(time_limit_ms), 1000, 86400000, NULL, "Stop after this time."},
    {"--limit", "N", OPTION_NUMBER, AT(max_schedules), 1, 10000000, NULL, "The same as --max-schedules."},
    {"--time", "T", OPTION_DURATION, AT(time_limit_ms), 1000, 86400000, NULL, "The same as --time-limit."},
    {"--show", "N", OPTION_NUMBER, AT(show), 0, SHOWN_MAX, NULL,
     "Print up to N counterexamples, the simplest first, with a column for each request."},
    {"--save", "DIR", OPTION_TEXT, AT(save), 0, 0, NULL,
     "Write the first counterexample to a file in DIR, for --replay in the tests of the service."},
    {"--replay", "WHAT", OPTION_TEXT, AT(replay), 0, 0, NULL,
     "Run one schedule only: a file from --save, or steps such as 'A>1 B>end A>end'. If a request has to wait, the "
     "next step begins."},
};
static const struct option_rows OPTIONS = OPTION_ROWS("What to run", ROWS);

/* ---- output ------------------------------------------------------------------------------------------------------------ */

static bool save(const struct explore_own *explore, const json_t *found)
{
    const struct saved_schedule settings = {.stock = explore->stock,
                                            .requests = explore->requests,
                                            .instances = explore->instances,
                                            .occupied = result_number(found, "occupied"),
                                            .frees = json_is_true(json_object_get(found, "frees")),
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
    json_auto_t *document = explore_own_document(explore, shown);
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
        if (kind == TRANSITION_STEP || kind == TRANSITION_TIMEOUT)
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
        explore->occupied = explore->saved.occupied;
        explore->frees = explore->saved.frees;
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

static int explore_own_begin(void *context, const struct texts *operands)
{
    struct explore_own *explore = context;
    explore->path = operands->item[0];
    explore->prints = strcmp(explore->output.format, "table") == 0 && !explore->output.output;
    if (!output_valid(&explore->output) || !read_replay(explore))
        return ENDED_USAGE;
    if ((explore->occupied > 0 || explore->frees) && !explore->replay) {
        complain("--occupied and --frees need --replay: a search finds the size of the pool by itself");
        return ENDED_USAGE;
    }
    if (!shop_description_read(explore->path, &explore->description))
        return ENDED_USAGE;
    if (explore->stock == 0)
        explore->stock = check_default_stock(explore->description.units, 1);
    if (!check_allowed(&explore->allow, &explore->allowed)) {
        shop_description_free(&explore->description);
        return ENDED_USAGE;
    }
    if (!explore->description.start[0])
        complain("%s: explore has to start the service, so that it connects to the gate; add start",
                 explore->path);
    else if (strcmp(explore->faults, "expire") == 0 && !explore->description.uses_redis &&
             !explore->description.expires)
        complain(
            "--faults expire ends keys in Redis, or leases in PostgreSQL. Give the service the address {redis} in \"env\" of %s, or add "
            "\"expires\"",
            explore->path);
    else if (explore->description.answers[SHOP_ACCEPTED].count > 0)
        shop_complain(
            &explore->description, "answers.accepted",
            "is for work that continues after the answer, which explore cannot give to a request. Use loadtest check");
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
        return explore_own_replay(explore, &schedule) && json_array_append_new(shown, schedule) == 0;
    bool ok = explore_own_search(explore);
    size_t count = explore->show > 1 ? (size_t)explore->show : 1;
    for (size_t i = 0; i < explore->worst.count && i < count && ok && (i == 0 || !interrupt_came()); i++) {
        const struct counterexample *worst = &explore->worst.item[i];
        bool is_slow = worst->occupied > 0 || worst->badness == VERDICT_STUCK;
        schedule = explore_own_show(explore, worst, i > 0 ? 1 : is_slow ? SLOW_REPLAYS : REPLAYS);
        if (i > 0 && interrupt_came()) { /* its last repetition may have ended in the middle */
            json_decref(schedule);
            break;
        }
        ok = schedule && json_array_append_new(shown, schedule) == 0;
    }
    return ok;
}

static bool explore_service(struct explore_own *explore, const struct shop_plan *plan)
{
    struct runner_settings settings = {.plan = plan,
                                       .service = &explore->service,
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
    interrupt_grace(GRACE_MS); /* for the schedule that runs, and one replay of a counterexample */
    explore->runner = runner_open(&settings);
    bool ok = explore->runner &&
              shop_service_restock(&explore->service, explore->database, explore->stock, &explore->before) &&
              explore_own_warm_up(explore);
    json_auto_t *shown = json_array();
    ok = ok && explore_all(explore, shown) && print(explore, shown);
    runner_close(explore->runner);
    return ok;
}

static int explore_own_run(void *context)
{
    struct explore_own *explore = context;
    bool ok = false;
    if (shop_servers_open(&explore->description, &explore->servers)) {
        const struct shop_plan plan = {.description = &explore->description,
                                       .folder = explore->servers.testbed.dir,
                                       .postgres = explore->gate_url,
                                       .redis = explore->servers.redis ? explore->redis_url : NULL,
                                       .instances = (size_t)explore->instances,
                                       .env = &explore->env};
        explore->database = shop_database_open(explore->servers.postgres, &explore->description,
                                               explore->stock);
        if (explore->database && explore_own_open_gate(explore)) {
            ok = shop_service_start(&plan, &explore->service) && explore_service(explore, &plan);
            shop_service_stop(&explore->service);
            if (!ok && gate_hint(explore->gate))
                complain("%s", gate_hint(explore->gate));
        }
        shop_database_close(explore->database);
        gate_close(explore->gate);
        redis_control_close(explore->redis);
        shop_servers_close(&explore->servers);
    }
    shop_description_free(&explore->description);
    routines_free(&explore->routines);
    known_tables_free(&explore->tables);
    saved_schedule_free(&explore->saved);
    if (!ok || explore->found[VERDICT_NOT_EXPLORED] > 0)
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
                "was not clean. Exit status 3: the search failed, or could not enter a statement that runs several others "
                "(verdict not-explored).",
            .example = "loadtest explore shop.json",
            .groups = {{&OPTIONS, 0}, {&output_options, AT(output)}},
        },
    .begin = explore_own_begin,
    .run_alone = explore_own_run,
};

int explore_own_main(int argc, char **argv)
{
    static struct explore_own explore = {
        .requests = 2,
        .max_schedules = 100000,
        .time_limit_ms = 600000,
        .instances = 1,
        .faults = "none",
        .reduce = "auto",
        .show = 1,
        .output = OUTPUT_DEFAULTS,
    };
    return run_command(&COMMAND, argc, argv, &explore);
}
