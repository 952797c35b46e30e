/* The verdict of `loadtest explore` on a schedule of a user's service, from the answers and from what the database has. */
#include "tests/unit/unit.h"

#include "loadtest/own/schedules/explore_own_impl.h"
#include "loadtest/own/schedules/request_runner_impl.h"

#include <stdio.h>

/* Two requests; one unit in stock at first. */
static const struct {
    const char *what;
    enum shop_meaning answers[2];
    int64_t sold, left;
    bool stuck, faulted;
    enum verdict verdict;
} SCHEDULES[] = {
    {"one buys and one is refused", {SHOP_SOLD, SHOP_REFUSED}, 1, 0, false, false, VERDICT_CLEAN},
    {"both buy", {SHOP_SOLD, SHOP_SOLD}, 2, 0, false, false, VERDICT_OVERSOLD},
    {"a sale does not lower the stock", {SHOP_SOLD, SHOP_REFUSED}, 1, 1, false, false, VERDICT_DRIFT},
    {"units are gone", {SHOP_REFUSED, SHOP_REFUSED}, 0, 0, false, false, VERDICT_DRIFT},
    {"an order is missing", {SHOP_SOLD, SHOP_SOLD}, 1, 0, false, false, VERDICT_ANSWERS_LOST},
    {"a refused order is there", {SHOP_REFUSED, SHOP_REFUSED}, 1, 0, false, false, VERDICT_ANSWERS_LOST},
    {"an error may have sold", {SHOP_UNCLEAR, SHOP_REFUSED}, 1, 0, false, false, VERDICT_CLEAN},
    {"both are turned away", {SHOP_REFUSED, SHOP_REFUSED}, 0, 1, false, false, VERDICT_TURNED_AWAY},
    {"not if a fault explains it", {SHOP_REFUSED, SHOP_REFUSED}, 0, 1, false, true, VERDICT_CLEAN},
    {"both wait for ever", {SHOP_UNCLEAR, SHOP_UNCLEAR}, 0, 1, true, false, VERDICT_STUCK},
    {"an oversell is worse", {SHOP_SOLD, SHOP_SOLD}, 2, 0, true, false, VERDICT_OVERSOLD},
};

static void each_answer_reaches_the_verdict(void **state)
{
    static struct explore_own explore; /* large */
    static struct run_record record;
    explore.requests = 2;
    explore.description.units = 1;
    explore.before = (struct shop_stock){.left = 1, .sold = 4, .broken = -1};
    for (size_t i = 0; i < COUNT(SCHEDULES); i++) {
        for (size_t answer = 0; answer < 2; answer++)
            record.answers[answer].meaning = SCHEDULES[i].answers[answer];
        record.after = (struct shop_stock){
            .left = SCHEDULES[i].left, .sold = 4 + SCHEDULES[i].sold, .broken = -1};
        record.stuck = SCHEDULES[i].stuck;
        record.faulted = SCHEDULES[i].faulted;
        enum verdict verdict = explore_own_judge(&explore, &record);
        if (verdict != SCHEDULES[i].verdict)
            fail_msg("%s: %s", SCHEDULES[i].what, verdict_name(verdict));
    }
}

/* How many requests had an answer without a meaning decides about "failing" (withdraw_clean). */
static void answers_without_a_meaning_are_counted(void **state)
{
    static struct explore_own explore; /* large */
    static struct run_record record;
    explore.requests = 2;
    explore.description.units = 1;
    explore.before = (struct shop_stock){.left = 1, .broken = -1};
    record.after = explore.before;
    record.answers[0].meaning = SHOP_SOLD;
    record.answers[1].meaning = SHOP_UNCLEAR;
    (void)explore_own_count(&explore, &record);
    assert_int_equal(explore.answers, 2);
    assert_int_equal(explore.unclear, 1);
    assert_int_equal(explore.unseen, 1); /* it sold without a statement */
    record.faulted = true;
    (void)explore_own_count(&explore, &record);
    assert_int_equal(explore.answers, 2);
    assert_int_equal(explore.schedules, 2);
}

/* A statement of characters of several bytes, cut at each byte: JSON refuses a part of a character. */
static void a_warning_quotes_any_statement(void **state)
{
    static struct explore_own explore;   /* large */
    static struct request_runner runner; /* large */
    explore.runner = &runner;
    explore.faults = "none";
    explore.path = "shop.json";
    for (size_t before = 0; before < 4; before++) {
        memset(explore.overtaken, 'x', before);
        explore.overtaken[before] = '\0';
        while (strlen(explore.overtaken) + strlen("€") < sizeof explore.overtaken)
            strcat(explore.overtaken, "€");
        memcpy(explore.stranger, explore.overtaken, sizeof explore.stranger);
        memcpy(explore.host, explore.overtaken, sizeof explore.host);
        json_auto_t *warnings = explore_own_warnings(&explore);
        assert_int_equal(json_array_size(warnings), 2);
        assert_non_null(strstr(json_string_value(json_array_get(warnings, 0)), "€€'; it runs"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_reaches_the_verdict),
        cmocka_unit_test(answers_without_a_meaning_are_counted),
        cmocka_unit_test(a_warning_quotes_any_statement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
