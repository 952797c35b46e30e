/* The verdict of `loadtest explore`, from the outcomes and steps of the orders of a schedule and from what the database has. */
#include "tests/unit/unit.h"

#include "loadtest/explore/exec/invariants.h"
#include "loadtest/explore/exec/lock_admin.h"
#include "loadtest/explore/spec/explore_verdict.h"

#include <stdio.h>

enum { STEPS = 6 };

/* Of the lab: they ask servers. */
static struct product_audit audit_now;
static bool server_knows;

bool product_schema_audit(struct product_schema *schema, struct product_audit *ret_audit)
{
    *ret_audit = audit_now;
    return true;
}

bool lock_admin_is_held(struct lock *admin, const struct lock_hold *hold)
{
    return server_knows;
}

/* Two orders of one unit each, of a stock of 1. */
static const struct {
    const char *what, *strategy;
    enum outcome outcomes[2];
    struct product_audit audit; /* left, sold, orders */
    struct event steps[STEPS];
    size_t count;
    enum verdict verdict;
    const char *why; /* part of it */
} SCHEDULES[] = {
    {"one buys and one is refused",
     "select-for-update",
     {ORDER_CREATED, ORDER_SOLD_OUT},
     {0, 1, 1},
     {{0}},
     0,
     VERDICT_OK,
     ""},
    {"both buy",
     "select-for-update",
     {ORDER_CREATED, ORDER_CREATED},
     {0, 2, 2},
     {{0}},
     0,
     VERDICT_BROKEN,
     "more units"},
    {"both buy, and only the stock goes below zero",
     "select-for-update",
     {ORDER_CREATED, ORDER_CREATED},
     {-1, 2, 2},
     {{0}},
     0,
     VERDICT_BROKEN,
     "more units"},
    {"a sale does not lower the stock",
     "select-for-update",
     {ORDER_CREATED, ORDER_SOLD_OUT},
     {1, 1, 1},
     {{0}},
     0,
     VERDICT_BROKEN,
     "the stock is not correct"},
    {"units are gone without a sale",
     "select-for-update",
     {ORDER_SOLD_OUT, ORDER_SOLD_OUT},
     {0, 0, 0},
     {{0}},
     0,
     VERDICT_BROKEN,
     "the stock is not correct"},
    {"an acknowledged order is missing",
     "select-for-update",
     {ORDER_CREATED, ORDER_SOLD_OUT},
     {1, 0, 0},
     {{0}},
     0,
     VERDICT_BROKEN,
     "not those that were acknowledged"},
    {"a refused order is there",
     "select-for-update",
     {ORDER_SOLD_OUT, ORDER_SOLD_OUT},
     {0, 1, 1},
     {{0}},
     0,
     VERDICT_BROKEN,
     "not those that were acknowledged"},
    {"a crashed order has committed",
     "select-for-update",
     {ORDER_UNKNOWN, ORDER_SOLD_OUT},
     {0, 1, 1},
     {{.actor = 0, .what = STEP_COMMIT}, {.actor = 0, .what = EVENT_CRASHED}},
     2,
     VERDICT_OK,
     ""},
    {"a crashed order has committed and is missing",
     "select-for-update",
     {ORDER_UNKNOWN, ORDER_SOLD_OUT},
     {1, 0, 0},
     {{.actor = 0, .what = STEP_COMMIT}, {.actor = 0, .what = EVENT_CRASHED}},
     2,
     VERDICT_BROKEN,
     "not those that were acknowledged"},
    {"an order waits in vain for its lock",
     "redis-lock",
     {ORDER_CREATED, ORDER_LOCK_TIMEOUT},
     {0, 1, 1},
     {{0}},
     0,
     VERDICT_BROKEN,
     "no other order explains it"},
    {"the backend is away",
     "select-for-update",
     {ORDER_CREATED, ORDER_BACKEND_UNAVAILABLE},
     {0, 1, 1},
     {{0}},
     0,
     VERDICT_BROKEN,
     "no other order explains it"},
    {"a conflict of a row that tries again",
     "optimistic",
     {ORDER_CREATED, ORDER_CONFLICT},
     {0, 1, 1},
     {{0}},
     0,
     VERDICT_BROKEN,
     "no other order explains it"},
    {"sold out while the unit is there",
     "select-for-update",
     {ORDER_CREATED, ORDER_SOLD_OUT},
     {1, 0, 0},
     {{.actor = 1, .what = EVENT_ENDED, .value = ORDER_SOLD_OUT}},
     1,
     VERDICT_BROKEN,
     "refused as sold out"},
    {"the flaw of an unsafe row",
     "read-write",
     {ORDER_CREATED, ORDER_CREATED},
     {0, 2, 2},
     {{0}},
     0,
     VERDICT_OVERSOLD_AS_EXPECTED,
     "more units"},
    {"an unsafe row without its flaw",
     "read-write",
     {ORDER_CREATED, ORDER_SOLD_OUT},
     {0, 1, 1},
     {{0}},
     0,
     VERDICT_NOT_CAUGHT,
     ""},
};

static struct execution execution; /* large */

static void set_up(const char *strategy)
{
    memset(&execution, 0, sizeof execution);
    trace_init(&execution.trace);
    execution.settings = (struct execution_settings){
        .strategy = strategy_find(strategy), .actors = 2, .stock = 1, .quantities = {1, 1}};
    for (uint8_t i = 0; i < 2; i++) {
        execution.actors[i].index = i;
        execution.actors[i].state = ACTOR_ENDED;
    }
    assert_non_null(execution.settings.strategy);
}

static enum verdict verdict_and_why(char *ret_why, size_t size)
{
    static struct totals totals; /* large */
    memset(&totals, 0, sizeof totals);
    totals_add(&totals, &execution, NULL);
    explore_verdict_why(&execution.settings, &totals, ret_why, size);
    return explore_verdict(&execution.settings, &totals, true);
}

static void check_events(void)
{
    pthread_mutex_lock(&execution.trace.mutex);
    assert_true(invariants_check(&execution, 0));
    pthread_mutex_unlock(&execution.trace.mutex);
}

static void each_count_comes_from_outcomes_and_rows(void **state)
{
    for (size_t i = 0; i < COUNT(SCHEDULES); i++) {
        char why[500];
        set_up(SCHEDULES[i].strategy);
        for (size_t step = 0; step < SCHEDULES[i].count; step++)
            execution.trace.events[execution.trace.event_count++] = SCHEDULES[i].steps[step];
        audit_now = execution.ending.audit = SCHEDULES[i].audit;
        memcpy(execution.ending.outcomes, SCHEDULES[i].outcomes, sizeof SCHEDULES[i].outcomes);
        check_events();
        invariants_check_end(&execution);
        enum verdict verdict = verdict_and_why(why, sizeof why);
        if (verdict != SCHEDULES[i].verdict || !strstr(why, SCHEDULES[i].why) ||
            (verdict == VERDICT_OK && *why))
            fail_msg("%s: %s, '%s'", SCHEDULES[i].what, verdict_name(verdict), why);
        trace_destroy(&execution.trace);
    }
}

/* What a schedule shows of the lock, although all units are right. */
static void each_count_of_the_lock_comes_from_steps(void **state)
{
    static const struct {
        const char *what;
        struct event step;
        bool second_holds, server_knows;
        const char *why;
    } STEPS_OF_LOCKS[] = {
        {"one holder", {.actor = 0, .what = STEP_LOCK}, false, true, ""},
        {"two holders", {.actor = 0, .what = STEP_LOCK}, true, true, "two holders of one lock"},
        {"the server does not know",
         {.actor = 0, .what = STEP_LOCK},
         false,
         false,
         "two holders of one lock"},
        {"a release deletes another's lock", {.actor = 0, .what = STEP_UNLOCK}, true, false, "lock stolen"},
        {"a release of the order's lock", {.actor = 0, .what = STEP_UNLOCK}, true, true, ""},
    };
    for (size_t i = 0; i < COUNT(STEPS_OF_LOCKS); i++) {
        char why[500];
        set_up("redis-lock");
        execution.ending.audit = (struct product_audit){.sold = 1, .orders = 1};
        execution.ending.outcomes[0] = ORDER_CREATED;
        execution.ending.outcomes[1] = ORDER_SOLD_OUT;
        execution.actors[0].hold.depth = STEPS_OF_LOCKS[i].step.what == STEP_LOCK;
        execution.actors[1].hold.depth = STEPS_OF_LOCKS[i].second_holds;
        server_knows = STEPS_OF_LOCKS[i].server_knows;
        execution.trace.events[execution.trace.event_count++] = STEPS_OF_LOCKS[i].step;
        check_events();
        invariants_check_end(&execution);
        enum verdict verdict = verdict_and_why(why, sizeof why);
        if ((verdict == VERDICT_OK) != !*STEPS_OF_LOCKS[i].why || !strstr(why, STEPS_OF_LOCKS[i].why))
            fail_msg("%s: %s, '%s'", STEPS_OF_LOCKS[i].what, verdict_name(verdict), why);
        trace_destroy(&execution.trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_count_comes_from_outcomes_and_rows),
        cmocka_unit_test(each_count_of_the_lock_comes_from_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
