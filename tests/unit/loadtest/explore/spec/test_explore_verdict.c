/* What the explorer makes of its counts: each verdict, and what can break a promise beside an oversell. */
#include "tests/unit/unit.h"

#include "loadtest/explore/spec/explore_verdict.h"

static struct execution_settings settings_of(const char *strategy)
{
    const struct strategy *row = strategy_find(strategy);
    assert_non_null(row);
    return (struct execution_settings){.strategy = row, .actors = 2, .stock = 1, .quantities = {1, 1}};
}

static enum verdict verdict(const char *strategy, struct totals totals)
{
    const struct execution_settings settings = settings_of(strategy);
    totals.schedules = 10;
    return explore_verdict(&settings, &totals, true);
}

static void a_promise_that_was_kept(void **state)
{
    const struct execution_settings safe = settings_of("select-for-update");
    const struct totals nothing = {.schedules = 10};
    assert_int_equal(explore_verdict(&safe, &nothing, true), VERDICT_OK);
    assert_int_equal(explore_verdict(&safe, &nothing, false), VERDICT_UNKNOWN);
    assert_int_equal(verdict("mutex", (struct totals){0}), VERDICT_OK);
}

static void a_flaw_that_is_shown_or_not(void **state)
{
    assert_int_equal(verdict("read-write", (struct totals){.oversold = 3, .bad = 3}),
                     VERDICT_OVERSOLD_AS_EXPECTED);
    assert_int_equal(verdict("read-write", (struct totals){0}), VERDICT_NOT_CAUGHT);
    struct execution_settings ample = settings_of("read-write");
    ample.stock = 2;
    assert_int_equal(explore_verdict(&ample, &(struct totals){.schedules = 10}, true), VERDICT_UNKNOWN);
    struct execution_settings crash = settings_of("redis-setnx-forever");
    crash.faults = SHOWN_BY_CRASH;
    assert_int_equal(explore_verdict(&crash, &(struct totals){.schedules = 10}, true), VERDICT_NOT_CAUGHT);
}

static void a_promise_that_was_broken(void **state)
{
    static const char *const ROWS[] = {"select-for-update", "mutex", "redis-lock"};
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        assert_int_equal(verdict(ROWS[i], (struct totals){.oversold = 1, .bad = 1}), VERDICT_BROKEN);
        assert_int_equal(verdict(ROWS[i], (struct totals){.failed = 1, .bad = 1}), VERDICT_BROKEN);
        assert_int_equal(verdict(ROWS[i], (struct totals){.stuck = 1, .bad = 1}), VERDICT_BROKEN);
        assert_int_equal(verdict(ROWS[i], (struct totals){.lock_stolen = 1}), VERDICT_BROKEN);
        assert_int_equal(verdict(ROWS[i], (struct totals){.two_holders = 1}), VERDICT_BROKEN);
        assert_int_equal(verdict(ROWS[i], (struct totals){.unbacked_grant = 1}), VERDICT_BROKEN);
        assert_int_equal(verdict(ROWS[i], (struct totals){.false_refusals = 1, .bad = 1}), VERDICT_BROKEN);
        assert_int_equal(verdict(ROWS[i], (struct totals){.leaked = 1, .bad = 1}), VERDICT_BROKEN);
    }
}

static void no_row_refuses_wrongly_or_keeps_its_lock(void **state)
{
    assert_int_equal(verdict("read-write", (struct totals){.oversold = 1, .false_refusals = 1, .bad = 2}),
                     VERDICT_BROKEN);
    assert_int_equal(verdict("mutex-early-release", (struct totals){.oversold = 1, .leaked = 1, .bad = 2}),
                     VERDICT_BROKEN);
}

static void a_deadlock_matters_where_nobody_tries_again(void **state)
{
    assert_int_equal(verdict("select-for-update", (struct totals){.deadlocks = 4}), VERDICT_BROKEN);
    assert_int_equal(verdict("bucketed", (struct totals){.deadlocks = 4}), VERDICT_OK);
}

static void other_figures_can_be_what_must_not_be(void **state)
{
    struct execution_settings never = settings_of("read-write");
    never.never = 1;
    assert_int_equal(explore_verdict(&never, &(struct totals){.schedules = 9, .oversold = 9}, true),
                     VERDICT_OK);
    assert_int_equal(explore_verdict(&never, &(struct totals){.schedules = 9, .bad = 1}, true),
                     VERDICT_BROKEN);
}

static void the_stronger_of_two_verdicts_counts(void **state)
{
    static const enum verdict ORDER[] = {VERDICT_BROKEN,     VERDICT_OVERSOLD_AS_EXPECTED,
                                         VERDICT_NOT_CAUGHT, VERDICT_UNAVAILABLE,
                                         VERDICT_UNKNOWN,    VERDICT_OK};
    for (size_t i = 0; i < COUNT(ORDER); i++)
        for (size_t j = i; j < COUNT(ORDER); j++) {
            assert_int_equal(explore_verdict_of_both(ORDER[i], ORDER[j]), ORDER[i]);
            assert_int_equal(explore_verdict_of_both(ORDER[j], ORDER[i]), ORDER[i]);
        }
}

static void what_broke_it_is_named(void **state)
{
    const struct execution_settings settings = settings_of("select-for-update");
    char why[400];
    const struct totals totals = {.schedules = 10, .false_refusals = 2, .deadlocks = 4};
    assert_string_equal(
        explore_verdict_why(&settings, &totals, why, sizeof why),
        "an order was refused as sold out although enough units were left (2 of 10 schedules); "
        "orders deadlocked (4 of 10 schedules)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_promise_that_was_kept),
        cmocka_unit_test(a_flaw_that_is_shown_or_not),
        cmocka_unit_test(a_promise_that_was_broken),
        cmocka_unit_test(no_row_refuses_wrongly_or_keeps_its_lock),
        cmocka_unit_test(a_deadlock_matters_where_nobody_tries_again),
        cmocka_unit_test(other_figures_can_be_what_must_not_be),
        cmocka_unit_test(the_stronger_of_two_verdicts_counts),
        cmocka_unit_test(what_broke_it_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
