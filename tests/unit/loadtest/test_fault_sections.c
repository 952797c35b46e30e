/* The part of fault_sections that needs no service: traces to sections, and which of these overlap. */
#include "loadtest/faults/checker/sections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PRODUCT = 7, SINCE_US = 1000, ROOM = 4 };

/* An order that has the lock at FROM_US and begins to commit at TO_US. */
static json_t *order(int product, const char *outcome, int from_us, int to_us, const char *commit)
{
    json_t *trace = json_pack(
        "{s:i, s:s, s:i, s:[{s:s, s:i, s:i}, {s:s, s:i, s:i}, {s:s, s:i, s:i}, {s:s, s:i, s:i}, {s:s, s:i, s:i}]}",
        "product_id", product, "outcome", outcome, "started_us", from_us - 50, "steps", "step", "wait",
        "begin_us", from_us - 50, "end_us", from_us - 40, "step", "lock", "begin_us", from_us - 40, "end_us",
        from_us, "step", "read", "begin_us", from_us, "end_us", to_us, "step", commit, "begin_us", to_us,
        "end_us", to_us + 5, "step", "unlock", "begin_us", to_us + 5, "end_us", to_us + 9);
    assert_non_null(trace);
    return trace;
}

static json_t *answer(json_t *first, json_t *second, json_t *third)
{
    json_t *whole = json_pack("{s:s, s:[o*, o*, o*]}", "instance", "one", "traces", first, second, third);
    assert_non_null(whole);
    return whole;
}

/* Overlaps in what one service and another one say, of *RET_SECTIONS. Both are freed. */
static size_t overlaps(json_t *one, json_t *other, size_t *ret_sections)
{
    struct section sections[2 * ROOM];
    *ret_sections = sections_of(one, PRODUCT, SINCE_US, sections, ROOM);
    *ret_sections += sections_of(other, PRODUCT, SINCE_US, &sections[*ret_sections], ROOM);
    json_decref(one);
    json_decref(other);
    return sections_overlapping(sections, *ret_sections);
}

static json_t *created(int from_us, int to_us)
{
    return order(PRODUCT, "created", from_us, to_us, "commit");
}

static void orders_one_after_the_other_do_not_overlap(void **state)
{
    (void)state;
    size_t sections;
    assert_int_equal(overlaps(answer(created(3000, 3100), created(1000, 1100), NULL), NULL, &sections), 0);
    assert_int_equal(sections, 2);
    assert_int_equal(overlaps(answer(NULL, NULL, NULL), NULL, &sections), 0);
    assert_int_equal(sections, 0);
}

static void orders_that_touch_do_not_overlap(void **state)
{
    (void)state;
    size_t sections;
    assert_int_equal(overlaps(answer(created(1000, 1100), created(1100, 1200), NULL), NULL, &sections), 0);
    assert_int_equal(sections, 2);
}

static void who_waits_or_learns_of_the_commit_is_not_inside(void **state)
{
    (void)state;
    size_t sections; /* the second waits from 1061, and the first has its answer at 1105 */
    assert_int_equal(overlaps(answer(created(1000, 1100), created(1101, 1200), NULL), NULL, &sections), 0);
    assert_int_equal(sections, 2);
}

static void each_that_began_within_another_overlaps(void **state)
{
    (void)state;
    size_t sections;
    json_t *nested = answer(created(1200, 1300), created(1000, 1500), created(1400, 1450));
    assert_int_equal(overlaps(nested, NULL, &sections), 2);
    assert_int_equal(sections, 3);
    json_t *staggered = answer(created(1000, 1200), created(1199, 1400), created(1400, 1500));
    assert_int_equal(overlaps(staggered, NULL, &sections), 1);
}

static void orders_of_two_services_overlap(void **state)
{
    (void)state;
    size_t sections;
    json_t *one = answer(created(1000, 1100), created(1300, 1400), NULL);
    json_t *other = answer(created(1150, 1250), created(1399, 1500), NULL);
    assert_int_equal(overlaps(one, other, &sections), 1);
    assert_int_equal(sections, 4);
}

static void another_product_is_not_looked_at(void **state)
{
    (void)state;
    size_t sections;
    json_t *mixed = answer(created(1000, 1500), order(PRODUCT + 1, "created", 1100, 1200, "commit"), NULL);
    assert_int_equal(overlaps(mixed, NULL, &sections), 0);
    assert_int_equal(sections, 1);
}

static void what_began_before_the_cycle_is_not_looked_at(void **state)
{
    (void)state;
    size_t sections;
    assert_int_equal(overlaps(answer(created(999, 1500), created(1000, 1200), NULL), NULL, &sections), 0);
    assert_int_equal(sections, 1);
}

static void an_order_counts_that_committed_under_a_lock(void **state)
{
    (void)state;
    size_t sections;
    json_t *some = answer(order(PRODUCT, "lost-lock", 1000, 1500, "commit"),
                          order(PRODUCT, "created", 1100, 1200, "insert"),
                          json_pack("{s:i, s:s, s:[{s:s, s:i, s:i}]}", "product_id", PRODUCT, "outcome",
                                    "created", "steps", "step", "commit", "begin_us", 1300, "end_us", 1400));
    assert_int_equal(overlaps(some, NULL, &sections), 0);
    assert_int_equal(sections, 0);
    /* Of two transactions the first is what the lock guards. */
    json_t *two = answer(order(PRODUCT, "created", 1000, 1100, "commit-stock"), created(1050, 1200), NULL);
    assert_int_equal(overlaps(two, NULL, &sections), 1);
    assert_int_equal(sections, 2);
}

static void more_than_was_asked_for_is_left_out(void **state)
{
    (void)state;
    struct section sections[3] = {0};
    json_t *three = answer(created(1000, 1100), created(1200, 1300), created(1400, 1500));
    assert_int_equal(sections_of(three, PRODUCT, SINCE_US, sections, 2), 2);
    assert_int_equal(sections[2].from_us, 0);
    json_decref(three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_one_after_the_other_do_not_overlap),
        cmocka_unit_test(orders_that_touch_do_not_overlap),
        cmocka_unit_test(who_waits_or_learns_of_the_commit_is_not_inside),
        cmocka_unit_test(each_that_began_within_another_overlaps),
        cmocka_unit_test(orders_of_two_services_overlap),
        cmocka_unit_test(another_product_is_not_looked_at),
        cmocka_unit_test(what_began_before_the_cycle_is_not_looked_at),
        cmocka_unit_test(an_order_counts_that_committed_under_a_lock),
        cmocka_unit_test(more_than_was_asked_for_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
