/* `loadtest explore`: a stateless model checker for the strategies. It runs a few orders against real servers in every sequence
 * in which their steps can follow each other, and looks for sequences that oversell or break something else.
 *
 * Schedule: a sequence of transitions, written `A>read B>end A>end` (search/schedule_notation.h). A transition lets one order
 * run to its next step, or is a fault: a lease ends, an order crashes, a wait times out (search/transition.h).
 * Holding orders: each order is an actor with its own thread in the service's engine. The engine reports every step to an
 * observer, which blocks the thread until the controller releases it (exec/actor_thread.c). An
 * actor tries once to take a lock. If the lock is taken, the controller holds the actor until another try makes sense
 * (exec/controlled_lock.c). So nothing depends on time.
 * End of a transition: the controller waits until every actor is held, has ended, or is blocked in PostgreSQL. It asks
 * pg_blocking_pids who is blocked (exec/execute_transition.c). Then the next enabled transitions are known (exec/execution.c).
 * Search: depth first over all schedules, each replayed from a fresh state; or with growing preemption bounds; or random
 * samples, uniform or by PCT (search/depth_first_search.h and search/pct_scheduler.h name the papers). Of schedules that differ only in the
 * sequence of steps that do not affect each other it runs one and counts all (exec/order_footprints.c, search/alike_schedules.h).
 * Invariants: checked after every transition and at the end of a schedule (exec/invariants.c).
 * Counterexample: a schedule that breaks an invariant. The simplest is kept (spec/totals.c), replayed ten times (run/campaign.c),
 * narrated (explain/narration.c) and explained by the conflict between two orders (explain/explanation.c).
 *
 * Limits: "every schedule" means every sequence of the steps that the engine reports. All orders buy one product. A schedule that is
 * searched has one fault; further faults, and servers that restart or are unreachable, are in scripts only. Redlock's acquire is one
 * step, so its votes are not interleaved. Without faults all orders are in one process. The lease of a crashed order ends only when
 * no other order can continue.
 *
 * Folders, each of which uses only those before it: loadtest/search/ (search and notation, pure), exec/ (one execution on real
 * servers), spec/ (scenario files, totals, verdict), explain/ (text for people), run/ (a strategy's searches, worker processes,
 * checkpoints, --replay), serve/ (the step-through page's questions). This file runs the command; explore_options.c reads its options. */
#include "base/clock.h"
#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/command/chosen_strategies.h"
#include "loadtest/explore/explore_options.h"
#include "loadtest/explore/run/explore_result.h"
#include "loadtest/explore/run/scenario_runner.h"
#include "loadtest/explore/run/worker_processes.h"
#include "loadtest/explore/serve/step_through.h"
#include "loadtest/report/output.h"
#include "loadtest/report/reproduce.h"
#include "loadtest/report/result.h"
#include "loadtest/testbed/testbed.h"
#include "lock/lock_driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- servers -------------------------------------------------------------------------------------------------- */

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static struct lock_config addresses_of_environment(void)
{
    return (struct lock_config){
        .database_url = from_environment("DATABASE_URL"),
        .redis_url = from_environment("REDIS_URL"),
        .redlock_urls = from_environment("REDLOCK_URLS"),
        .zookeeper_connect = from_environment("ZOOKEEPER_CONNECT"),
        .etcd_endpoints = from_environment("ETCD_ENDPOINTS"),
        .prefix = "oversell-explore",
        .try_ms = LOCK_COMMAND_MS,
    };
}

static bool learn_addresses(const struct testbed *testbed, const struct explore_settings *settings,
                            struct lock_config *ret_addresses)
{
    bool environment = strcmp(settings->servers, "environment") == 0;
    *ret_addresses = environment ? addresses_of_environment() : testbed->addresses;
    ret_addresses->try_ms = LOCK_COMMAND_MS;
    if (!*ret_addresses->database_url)
        complain("no database: set DATABASE_URL, or use --servers private");
    return *ret_addresses->database_url;
}

static int serve(void)
{
    struct lock_config addresses = addresses_of_environment();
    lock_configure(&addresses);
    return explore_serve(addresses.database_url);
}

/* ---- exploring ------------------------------------------------------------------------------------------------- */

static int explore_in(struct testbed *testbed, const struct explore_settings *settings,
                      const struct strategy *const *chosen, size_t count)
{
    struct lock_config addresses;
    json_t *found[STRATEGIES_MAX] = {0};
    json_auto_t *rows = json_array();
    if (!learn_addresses(testbed, settings, &addresses))
        return ENDED_ENVIRONMENT;
    if (settings->plan.checkpoints && mkdir(settings->plan.checkpoints, 0777) != 0 && errno != EEXIST) {
        complain("cannot create %s: %s", settings->plan.checkpoints, strerror(errno));
        return ENDED_ENVIRONMENT;
    }
    int64_t began_us = monotonic_us();
    bool explored = worker_processes_run(&settings->plan, &addresses, chosen, count, (size_t)settings->jobs,
                                         found);
    json_auto_t *missing = json_array();
    for (size_t i = 0; i < count; i++)
        if (found[i] ? json_array_append_new(rows, found[i]) != 0
                     : json_array_append_new(missing, json_string(chosen[i]->name)) != 0)
            explored = false;
    if (json_array_size(rows) == 0)
        return ENDED_ENVIRONMENT;
    json_auto_t *document = result_new("explore", explore_settings_json(settings));
    double seconds = (double)(monotonic_us() - began_us) / 1e6;
    if (!document || json_object_set(document, "rows", rows) != 0 ||
        json_object_set_new(document, "seconds", json_real(seconds)) != 0 ||
        json_object_set_new(document, "jobs", json_integer((json_int_t)settings->jobs)) != 0 ||
        json_object_set_new(document, "interrupted", json_boolean(interrupted())) != 0 ||
        json_object_set(document, "missing", missing) != 0) {
        complain("out of memory");
        return ENDED_ENVIRONMENT;
    }
    bool written = output_write(&explore_result, document, &settings->output);
    if (settings->plan.limits.show && strcmp(settings->output.format, "json") != 0)
        print_counterexamples(rows);
    if (settings->save && !save_counterexamples(rows, settings->save))
        written = false;
    int status = result_status(rows, settings->strategies);
    return written && (explored || status == ENDED_BROKEN) ? status : ENDED_ENVIRONMENT;
}

/* ---- replays --------------------------------------------------------------------------------------------------- */

static int write_replays(const struct explore_settings *settings, json_t *results)
{
    json_auto_t *document = result_new("replay", json_object());
    char *text = NULL;
    if (document && json_object_set(document, "replays", results) == 0)
        text = json_dumps(document, JSON_INDENT(2));
    bool written = text && (settings->output.output ? output_file(settings->output.output, text, strlen(text))
                                                    : printf("%s\n", text) > 0);
    free(text);
    return written ? ENDED_AS_EXPECTED : ENDED_ENVIRONMENT;
}

static int replay_in(struct testbed *testbed, const struct explore_settings *settings,
                     const struct scenario_list *list)
{
    struct lock_config addresses;
    struct product_schema schema;
    int status = ENDED_ENVIRONMENT;
    bool as_json = strcmp(settings->output.format, "json") == 0;
    if (!learn_addresses(testbed, settings, &addresses))
        return status;
    lock_configure(&addresses);
    if (!product_schema_open(addresses.database_url, &schema)) {
        complain("PostgreSQL: %s", schema.error);
        return status;
    }
    json_auto_t *results = scenario_list_run(list, &schema, addresses.database_url, as_json ? NULL : stdout,
                                             &status);
    product_schema_close(&schema);
    if (!results || (as_json && write_replays(settings, results) != ENDED_AS_EXPECTED))
        return ENDED_ENVIRONMENT;
    return status;
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static int in_lab(const struct explore_settings *settings, const char *strategies_meant,
                  const struct scenario_list *list)
{
    const struct strategy *chosen[STRATEGIES_MAX];
    struct testbed_settings place = {
        .servers = settings->servers, .database = true, .strategies = strategies_meant};
    struct testbed testbed;
    int status = ENDED_ENVIRONMENT;
    size_t count = list->count ? 0 : chosen_strategies(strategies_meant, chosen);
    if ((list->count == 0 && count == 0) || !testbed_settings_valid(&place))
        return ENDED_USAGE;
    interrupt_watch();
    if (testbed_open(&place, &testbed)) {
        status = list->count ? replay_in(&testbed, settings, list)
                             : explore_in(&testbed, settings, chosen, count);
        testbed_close(&testbed);
    }
    return interrupt_status(status);
}

static int replay(const struct explore_settings *settings)
{
    struct scenario_list list = {0};
    bool read = true;
    for (size_t i = 0; i < settings->replays.count && read; i++)
        read = scenario_list_add(&list, settings->replays.item[i]);
    for (size_t i = 0; i < list.count; i++)
        list.item[i].scenario.settings.records = settings->sent;
    char *names = read ? scenario_list_strategies(&list) : NULL;
    int status = names ? in_lab(settings, names, &list) : ENDED_USAGE;
    free(names);
    scenario_list_free(&list);
    return status;
}

int explore_main(int argc, char **argv)
{
    struct explore_settings settings;
    switch (explore_options_parse(argc, argv, &settings)) {
    case OPTIONS_OK: break;
    case OPTIONS_HELP: return ENDED_AS_EXPECTED;
    case OPTIONS_BAD: return ENDED_USAGE;
    }
    if (settings.serve)
        return serve();
    reproduce_by(argc, argv);
    if (settings.replays.count > 0)
        return replay(&settings);
    return in_lab(&settings, settings.strategies, &(struct scenario_list){0});
}
