/* Finds and describes the event that makes a strategy oversell. */
#include "loadtest/load/show_flaw.h"

#include "loadtest/explore/run/worker_processes.h"
#include "loadtest/report/result.h"
#include "lock/lock_driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PHRASE_MAX = 120, SEARCH_MS = 60000, STOCK = 1 /* units in a schedule */ };

/* The damage in a few words, of the audit after a load or a schedule. */
static void describe_damage(int64_t sold, int64_t stock, int64_t drift, bool stuck, char text[PHRASE_MAX])
{
    if (sold > stock)
        snprintf(text, PHRASE_MAX, "sold %" PRId64 " of %" PRId64, sold, stock);
    else if (stuck)
        snprintf(text, PHRASE_MAX, "the lock stays locked");
    else if (drift < 0)
        snprintf(text, PHRASE_MAX, "lost %" PRId64 " of %" PRId64, -drift, stock);
    else
        snprintf(text, PHRASE_MAX, "the stock is off by %" PRId64, drift);
}

static json_t *shown_by_load(const json_t *row)
{
    char damage[PHRASE_MAX];
    bool second = strstr(result_text(row, "shown_by"), "second-process");
    describe_damage(result_number(row, "sold"), result_number(row, "stock"), result_number(row, "drift"),
                    false, damage);
    return json_pack("{s:o, s:s, s:n, s:n, s:n}", "breaks_when",
                     json_sprintf("%s: %s", second ? "second process" : "two orders at once", damage), "by",
                     second ? "second-process" : "load", "replay", "told", "explanation");
}

/* The event, in words. */
static const char *name_event(enum shown_by event, const struct lock_driver *lock)
{
    static const char *const EXPIRIES[] = {[CARRIER_NONE] = "lease expires",
                                           [CARRIER_LEASE] = "lease expires",
                                           [CARRIER_SESSION] = "session expires",
                                           [CARRIER_CONNECTION] = "connection breaks"};
    switch (event) {
    case SHOWN_BY_SECOND_PROCESS: return "second process";
    case SHOWN_BY_CRASH: return "holder crashes";
    default: return EXPIRIES[lock ? lock->properties.carrier : CARRIER_NONE];
    }
}

/* Searches schedules with one EVENT until one breaks the promise. Returns the explorer's row, or NULL. */
static json_t *find_schedule(const struct testbed *testbed, const struct strategy *strategy,
                             enum shown_by event)
{
    struct explore_plan plan = {.actors = 2,
                                .stock = STOCK,
                                .faults = event,
                                .limits = {.bound = 1, .time_ms = SEARCH_MS, .first = true}};
    struct lock_config addresses = testbed->addresses;
    json_t *found = NULL;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        plan.quantities[i] = 1;
    addresses.prefix = "oversell-explore";
    addresses.try_ms = LOCK_COMMAND_MS;
    (void)worker_processes_run(&plan, &addresses, &strategy, 1, 1, &found);
    return found;
}

/* The schedule in which the strategy fails, as the member "shown". JSON null if the search could not be finished; or if it found none:
 * then the row's verdict and finding say so. */
static json_t *shown_by_schedule(const struct testbed *testbed, const struct strategy *strategy, json_t *row)
{
    char damage[PHRASE_MAX];
    enum shown_by event = strategy->shown_by & SHOWN_BY_EXPIRY  ? SHOWN_BY_EXPIRY
                          : strategy->shown_by & SHOWN_BY_CRASH ? SHOWN_BY_CRASH
                                                                : SHOWN_BY_SECOND_PROCESS;
    bool second = event == SHOWN_BY_SECOND_PROCESS;
    const char *name = name_event(event, strategy->lock);
    json_auto_t *found = find_schedule(testbed, strategy, event);
    const json_t *schedule = json_object_get(found, "witness"), *ending = json_object_get(schedule, "ending");
    if (!ending && json_is_true(json_object_get(found, "complete")) &&
        (json_object_set_new(row, "verdict", json_string(verdict_name(VERDICT_NOT_CAUGHT))) != 0 ||
         json_object_set_new(row, "finding",
                             json_sprintf("no schedule of two orders failed with this event: %s", name)) !=
             0))
        return NULL;
    if (!ending)
        return json_null();
    describe_damage(result_number(ending, "sold"), STOCK, result_number(ending, "drift"),
                    json_is_true(json_object_get(ending, "stuck")), damage);
    /* The notation of schedules has no word for the processes that the orders run in. */
    return json_pack("{s:o, s:s, s:O?, s:O, s:O}", "breaks_when", json_sprintf("%s: %s", name, damage), "by",
                     second                    ? "second-process"
                     : event == SHOWN_BY_CRASH ? "crash"
                                               : "expire",
                     "replay", second ? NULL : json_object_get(schedule, "replay"), "told",
                     json_object_get(schedule, "told"), "explanation",
                     json_object_get(schedule, "explanation"));
}

bool show_flaw(const struct testbed *testbed, json_t *row)
{
    const struct strategy *strategy = strategy_find(result_text(row, "strategy"));
    enum verdict verdict = result_verdict(row);
    json_t *shown;
    if (verdict == VERDICT_OVERSOLD_AS_EXPECTED)
        shown = shown_by_load(row);
    else if (verdict == VERDICT_FLAWED && testbed->stack_is_up && strategy &&
             strategy->shown_by & (SHOWN_BY_EXPIRY | SHOWN_BY_CRASH | SHOWN_BY_SECOND_PROCESS))
        shown = shown_by_schedule(testbed, strategy, row);
    else
        shown = json_null();
    return shown && json_object_set_new(row, "shown", shown) == 0;
}
