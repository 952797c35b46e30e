/* The verdict of check on a run, from the answers and what the database says. */
#include "tests/unit/unit.h"

#include "loadtest/own/check_row.h"

#include <stdio.h>
#include <string.h>

static const char INVARIANT[] = "SELECT false";

/* 100 units in stock at first. */
static const struct {
    const char *what;
    int64_t units;
    struct check_answers answers;
    int64_t sold, left;
    int broken;
    enum verdict verdict;
} RUNS[] = {
    {"all is sold", 1, {.acknowledged = 100, .refused = 300}, 100, 0, -1, VERDICT_CLEAN},
    {"nobody was refused", 1, {.acknowledged = 60}, 60, 40, -1, VERDICT_CLEAN},
    {"one unit too much", 1, {.acknowledged = 101, .refused = 299}, 101, 0, -1, VERDICT_OVERSOLD},
    {"oversold comes before all others",
     1,
     {.acknowledged = 90, .refused = 10, .unclear = 300},
     101,
     5,
     0,
     VERDICT_OVERSOLD},
    {"a sale that did not lower the stock", 1, {.acknowledged = 50}, 50, 51, -1, VERDICT_DRIFT},
    {"stock without a sale", 1, {.acknowledged = 50}, 50, 49, -1, VERDICT_DRIFT},
    {"drift comes before an invariant", 1, {.acknowledged = 50}, 50, 49, 0, VERDICT_DRIFT},
    {"an invariant", 1, {.acknowledged = 100, .refused = 1}, 100, 0, 0, VERDICT_INVARIANT},
    {"an order that is not there", 1, {.acknowledged = 51}, 50, 50, -1, VERDICT_ANSWERS_LOST},
    {"an order that was refused", 1, {.acknowledged = 49, .refused = 1}, 50, 50, -1, VERDICT_ANSWERS_LOST},
    {"an order whose answer is not clear", 1, {.acknowledged = 99, .unclear = 1}, 100, 0, -1, VERDICT_CLEAN},
    {"answers lost come before buyers turned away",
     1,
     {.acknowledged = 51, .refused = 1},
     50,
     50,
     -1,
     VERDICT_ANSWERS_LOST},
    {"one was turned away", 1, {.acknowledged = 99, .refused = 1}, 99, 1, -1, VERDICT_TURNED_AWAY},
    {"a rest is no offer", 3, {.acknowledged = 33, .refused = 99}, 99, 1, -1, VERDICT_CLEAN},
    {"but enough for one is", 3, {.acknowledged = 32, .refused = 99}, 96, 4, -1, VERDICT_TURNED_AWAY},
    {"turned away comes before failing",
     1,
     {.acknowledged = 10, .refused = 1, .unclear = 50},
     10,
     90,
     -1,
     VERDICT_TURNED_AWAY},
    {"a twentieth may fail", 1, {.acknowledged = 95, .unclear = 5}, 95, 5, -1, VERDICT_CLEAN},
    {"no more than that", 1, {.acknowledged = 94, .unclear = 6}, 94, 6, -1, VERDICT_FAILING},
    {"none works", 1, {.unclear = 6}, 0, 100, -1, VERDICT_FAILING},
    {"nothing was sent", 1, {.unclear = 0}, 0, 100, -1, VERDICT_CLEAN},
    {"accepted and sold", 1, {.accepted = 400}, 100, 0, -1, VERDICT_CLEAN},
    {"accepted and not sold", 1, {.accepted = 60}, 59, 41, -1, VERDICT_TURNED_AWAY},
    {"all that was accepted is sold", 1, {.accepted = 60}, 60, 40, -1, VERDICT_CLEAN},
    {"more than was accepted", 1, {.accepted = 60}, 61, 39, -1, VERDICT_ANSWERS_LOST},
    {"accepted does not fail", 1, {.acknowledged = 1, .accepted = 99}, 100, 0, -1, VERDICT_CLEAN},
};

static struct check_counts counts_of(size_t i)
{
    const struct shop_description description = {.units = RUNS[i].units, .invariants = {INVARIANT}};
    /* What was sold before the run does not count. */
    const struct shop_stock before = {.left = 100, .sold = 7, .broken = -1},
                            after = {
                                .left = RUNS[i].left, .sold = 7 + RUNS[i].sold, .broken = RUNS[i].broken};
    return check_counts_of(&description, &before, &after, &RUNS[i].answers);
}

static void test_verdicts(void **state)
{
    for (size_t i = 0; i < COUNT(RUNS); i++) {
        const struct check_counts counts = counts_of(i);
        if (check_verdict(&counts, 0) != RUNS[i].verdict)
            fail_msg("%s: %s, not %s", RUNS[i].what, verdict_name(check_verdict(&counts, 0)),
                     verdict_name(RUNS[i].verdict));
    }
}

static void test_what_is_allowed(void **state)
{
    const unsigned away = 1U << VERDICT_TURNED_AWAY, failing = 1U << VERDICT_FAILING;
    for (size_t i = 0; i < COUNT(RUNS); i++) {
        const struct check_counts counts = counts_of(i);
        enum verdict verdict = RUNS[i].verdict;
        bool is_allowed = verdict == VERDICT_TURNED_AWAY || verdict == VERDICT_FAILING;
        assert_int_equal(check_verdict(&counts, away | failing), is_allowed ? VERDICT_CLEAN : verdict);
        if (verdict == VERDICT_FAILING)
            assert_int_equal(check_verdict(&counts, away), VERDICT_FAILING);
    }
}

static void test_names_of_allowed_verdicts(void **state)
{
    unsigned allowed;
    assert_true(check_allowed(&(struct texts){.count = 0}, &allowed));
    assert_int_equal(allowed, 0);
    assert_true(check_allowed(&(struct texts){{"failing", "turned-away"}, 2}, &allowed));
    assert_int_equal(allowed, 1U << VERDICT_FAILING | 1U << VERDICT_TURNED_AWAY);
    assert_false(check_allowed(&(struct texts){{"oversold"}, 1}, &allowed));
    assert_false(check_allowed(&(struct texts){{"none"}, 1}, &allowed));
}

static void test_counts(void **state)
{
    const struct shop_description description = {.units = 3};
    const struct shop_stock before = {.left = 10, .broken = -1},
                            after = {.left = 2, .sold = 12, .broken = -1};
    const struct check_counts counts = check_counts_of(
        &description, &before, &after,
        &(struct check_answers){.acknowledged = 1, .accepted = 1, .unclear = 1});
    assert_int_equal(counts.oversold, 2);
    assert_int_equal(counts.drift, 4);
    assert_int_equal(counts.lost, 0);
    assert_int_equal(counts.unacknowledged, 3);
    const struct check_counts lost = check_counts_of(&description, &before, &after,
                                                     &(struct check_answers){.acknowledged = 5});
    assert_int_equal(lost.lost, 3);
}

/* With a rest that one unit more than a line of an order needs, an order that checks each of its lines alone shows. */
static void test_default_stock(void **state)
{
    assert_int_equal(check_default_stock(1, 1), 1);
    assert_int_equal(check_default_stock(1, 100), 100);
    for (int64_t units = 2; units < 200; units++)
        assert_int_equal(check_default_stock(units, 7) % units, units - 1);
}

/* The note says what was counted, and not how it came to that. */
static void test_an_oversell_is_no_diagnosis(void **state)
{
    static const struct {
        json_int_t drift;
        const char *says;
    } NOTES[] = {
        {0, "Run 1: 3 units were sold beyond the stock. loadtest explore shows"},
        {2,
         "Run 1: 3 units were sold beyond the stock, and the stock went down by 2 units less than were sold. loadtest explore shows"},
        {-2,
         "Run 1: 3 units were sold beyond the stock, and the stock went down by 2 units more than were sold. loadtest explore shows"},
    };
    for (size_t i = 0; i < COUNT(NOTES); i++) {
        struct notes notes = {0};
        json_t *document = json_pack("{s:{s:i, s:i}, s:[{s:i, s:i, s:I, s:s}]}", "settings", "requests", 10,
                                     "units", 1, "rows", "run", 1, "oversold", 3, "drift", NOTES[i].drift,
                                     "verdict", "oversold");
        assert_non_null(document);
        check_result.notes(document, &notes);
        assert_int_equal(strncmp(notes.item[0].text, NOTES[i].says, strlen(NOTES[i].says)), 0);
        assert_null(strstr(notes.item[0].text, "lost update"));
        notes_free(&notes);
        json_decref(document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_what_is_allowed),
        cmocka_unit_test(test_names_of_allowed_verdicts),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_default_stock),
        cmocka_unit_test(test_an_oversell_is_no_diagnosis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
