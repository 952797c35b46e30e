/* The notation of schedules and the files of scenarios: what is written reads back, and what is wrong is said. */
#include "tests/unit/unit.h"

#include "loadtest/explore/spec/scenario.h"

#include <stdio.h>

static char error[600];

/* ---- the notation --------------------------------------------------------------------------------------------- */

static void a_script_reads_back_as_it_is_written(void **state)
{
    static const char *const SCRIPTS[] = {
        "",
        "A>read B>end A>end",
        "A>lock B>lock~ A>unlock B>read~ A>commit-order",
        "A>setnx A!crash B>lock~",
        "B>get A!expire C>del",
        "A>read A>retry A>read A>check A>take A>insert A>fence A>write A>commit-stock A>expire",
    };
    for (size_t i = 0; i < COUNT(SCRIPTS); i++) {
        struct script script;
        char words[SCRIPT_TEXT];
        assert_true(script_parse(SCRIPTS[i], 3, &script, error, sizeof error));
        assert_string_equal(script_words(&script, words), SCRIPTS[i]);
    }
}

static void spaces_of_any_kind_separate_words(void **state)
{
    struct script script;
    char words[SCRIPT_TEXT];
    assert_true(script_parse("  A>read\t\tB>end \r\n", 2, &script, error, sizeof error));
    assert_string_equal(script_words(&script, words), "A>read B>end");
}

static void what_is_no_word_is_refused_with_what_is_valid(void **state)
{
    static const char *const WRONG[] = {"A",      "A>",           "A>~",     "A>reads", "A>rea",
                                        "a>read", "C>read",       "A!read",  "A!",      "A>waits",
                                        "A<read", "A>read,B>end", "A>crash", "@>read",  "A!crash~"};
    for (size_t i = 0; i < COUNT(WRONG); i++) {
        struct script script;
        error[0] = '\0';
        if (script_parse(WRONG[i], 2, &script, error, sizeof error))
            fail_msg("'%s' was taken", WRONG[i]);
        assert_non_null(strstr(error, WRONG[i]));
        assert_non_null(strstr(error, " read "));
        assert_non_null(strstr(error, "from A to B"));
    }
}

static void a_script_has_an_end(void **state)
{
    static char text[(SCRIPT_MAX + 1) * 8];
    struct script script;
    size_t used = 0;
    for (size_t i = 0; i < SCRIPT_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "A>read ");
    assert_true(script_parse(text, 1, &script, error, sizeof error));
    snprintf(text + used, sizeof text - used, "A>read ");
    assert_false(script_parse(text, 1, &script, error, sizeof error));
}

/* ---- scenarios ------------------------------------------------------------------------------------------------ */

static struct scenario scenarios[4];

static size_t parse(const char *text)
{
    static char copy[2000];
    snprintf(copy, sizeof copy, "%s", text);
    error[0] = '\0';
    return scenarios_parse(copy, scenarios, COUNT(scenarios), error, sizeof error);
}

static void a_file_is_read(void **state)
{
    assert_int_equal(parse("# a story\n"
                           "strategy read-write   stock 3   orders A:1 B:2   # of two\n"
                           "\n"
                           "schedule A>read B>end A>end\n"
                           "expect   sold 2  oversold 1\n"
                           "expect   left -1  B sold-out\n"
                           "schedules all   faults expire crash\n"
                           "expect   never oversold  sometimes drift  schedules 24\n"),
                     2);
    const struct scenario *one = &scenarios[0], *all = &scenarios[1];
    assert_string_equal(one->settings.strategy->name, "read-write");
    assert_int_equal(one->settings.stock, 3);
    assert_int_equal(one->settings.actors, 2);
    assert_int_equal(one->settings.quantities[1], 2);
    assert_int_equal(one->script.count, 3);
    assert_int_equal(one->line, 4);
    assert_int_equal(one->expectation_count, 4);
    assert_true(all->all && !one->all);
    assert_int_equal(all->settings.faults, SHOWN_BY_EXPIRY | SHOWN_BY_CRASH);
    assert_int_equal(all->settings.stock, 3);
    assert_int_equal(all->expectation_count, 3);
}

static void one_schedule_is_held_against_its_expectations(void **state)
{
    struct ending ending = {.audit = {.sold = 2, .left = -1},
                            .oversold = 1,
                            .stuck = true,
                            .outcomes = {ORDER_CREATED, ORDER_SOLD_OUT}};
    static const struct {
        const char *expect;
        bool met;
    } CASES[] = {
        {"sold 2", true},    {"sold 1", false},     {"left -1", true},    {"left 1", false},
        {"stuck 1", true},   {"stuck 0", false},    {"waited 0", true},   {"oversold 1 drift 0", true},
        {"A created", true}, {"A sold-out", false}, {"B sold-out", true}, {"sold 2 B created", false},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        char text[200];
        snprintf(text, sizeof text, "strategy mutex orders A:1 B:1\nschedule A>end\nexpect %s\n",
                 CASES[i].expect);
        assert_int_equal(parse(text), 1);
        if (scenario_met(&scenarios[0], &ending, NULL, error, sizeof error) != CASES[i].met)
            fail_msg("'%s' was%s met: %s", CASES[i].expect, CASES[i].met ? " not" : "", error);
    }
}

static void all_schedules_are_held_against_theirs(void **state)
{
    struct totals totals = {.schedules = 24, .oversold = 22, .bad = 22};
    static const struct {
        const char *expect;
        bool met;
    } CASES[] = {
        {"schedules 24", true},     {"schedules 25", false},
        {"oversold 22", true},      {"never oversold", false},
        {"sometimes drift", false}, {"sometimes bad", true},
        {"never stuck", true},      {"never drift oversold 21", false},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        char text[200];
        snprintf(text, sizeof text, "strategy mutex orders A:1 B:1\nschedules all\nexpect %s\n",
                 CASES[i].expect);
        assert_int_equal(parse(text), 1);
        if (scenario_met(&scenarios[0], NULL, &totals, error, sizeof error) != CASES[i].met)
            fail_msg("'%s' was%s met: %s", CASES[i].expect, CASES[i].met ? " not" : "", error);
    }
}

static void what_is_wrong_in_a_file_is_said_with_its_line(void **state)
{
#define MUTEX "strategy mutex stock 1 orders A:1 B:1\n"
    static const struct {
        const char *text, *says;
    } CASES[] = {
        {"", "no schedule"},
        {"# nothing\n", "no schedule"},
        {"schedule A>end\n", "line 1: 'schedule' comes after a strategy"},
        {MUTEX "expect sold 1\n", "line 2: 'expect' comes after a schedule"},
        {"strategy nobody orders A:1\n", "line 1: unknown strategy 'nobody'"},
        {"strategy mutex stock 1\n", "line 1: no orders"},
        {"strategy mutex stock x orders A:1\n", "line 1: stock 'x'"},
        {"strategy mutex orders B:1\n", "line 1: 'B:1' is not the next order"},
        {"strategy mutex orders A:0\n", "line 1: quantity '0'"},
        {MUTEX "schedule C>end\n", "line 2: 'C>end' is not valid"},
        {MUTEX "schedules some\n", "line 2: 'schedules'"},
        {MUTEX "schedules all faults rain\n", "line 2: 'rain' is no fault"},
        {MUTEX "schedule A>end\nexpect never oversold\n", "line 3: 'never' and 'sometimes'"},
        {MUTEX "schedule A>end\nexpect schedules 3\n", "line 3: 'schedules' cannot be expected of one"},
        {MUTEX "schedules all\nexpect sold 3\n", "line 3: 'sold' cannot be expected of all"},
        {MUTEX "schedules all\nexpect A created\n", "line 3: 'A' is no order"},
        {MUTEX "schedule A>end\nexpect A happy\n", "line 3: 'happy' is no outcome"},
        {MUTEX "schedule A>end\nexpect sold\n", "line 3: sold ''"},
        {MUTEX "play A>end\n", "line 2: 'play' is not valid"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        assert_int_equal(parse(CASES[i].text), 0);
        if (!strstr(error, CASES[i].says))
            fail_msg("'%s' says '%s', not '%s'", CASES[i].text, error, CASES[i].says);
    }
}

static void the_short_form_reads_back(void **state)
{
    static const struct {
        const char *text, *back;
    } CASES[] = {
        {"read-write s=1 q=1,1 A>read B>end A>end", NULL}, {"mutex s=5 q=2,1,3 C>read", NULL},
        {"mutex A>read", "mutex s=1 q=1,1 A>read"},        {"mutex q=2 A>read", "mutex s=1 q=2 A>read"},
        {"  mutex   q=1,1   s=0 ", "mutex s=0 q=1,1 "},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct scenario scenario;
        char text[SCENARIO_TEXT];
        assert_true(scenario_parse_short(CASES[i].text, &scenario, error, sizeof error));
        assert_string_equal(scenario_short(&scenario.settings, &scenario.script, text),
                            CASES[i].back ? CASES[i].back : CASES[i].text);
    }
}

static void a_short_form_that_is_wrong_is_refused(void **state)
{
    static const char *const WRONG[] = {"",
                                        "nobody A>end",
                                        "mutex s=x A>end",
                                        "mutex q= A>end",
                                        "mutex q=1,0 A>end",
                                        "mutex q=1,1,1,1,1 A>end",
                                        "mutex q=1 B>end",
                                        "mutex A>sleep",
                                        "mutex x=1"};
    struct scenario scenario;
    for (size_t i = 0; i < COUNT(WRONG); i++)
        if (scenario_parse_short(WRONG[i], &scenario, error, sizeof error))
            fail_msg("'%s' was taken", WRONG[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_reads_back_as_it_is_written),
        cmocka_unit_test(spaces_of_any_kind_separate_words),
        cmocka_unit_test(what_is_no_word_is_refused_with_what_is_valid),
        cmocka_unit_test(a_script_has_an_end),
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(one_schedule_is_held_against_its_expectations),
        cmocka_unit_test(all_schedules_are_held_against_theirs),
        cmocka_unit_test(what_is_wrong_in_a_file_is_said_with_its_line),
        cmocka_unit_test(the_short_form_reads_back),
        cmocka_unit_test(a_short_form_that_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
