/* The part of fault_sections that needs no service: traces to sections, and which of these overlap. */
#include "tests/unit/unit.h"

#include "loadtest/faults/checker/sections.h"

enum { PRODUCT = 7, SINCE_US = 1000, ROOM = 4 };

/* An order that has the lock at FROM_US and begins to commit at TO_US. What is left out: created, PRODUCT, "commit". */
struct order {
    int from_us, to_us;
    const char *outcome, *commit;
    int product;
};

#define AT(from, to, ...)                                                                                    \
    {                                                                                                        \
        .from_us = (from), .to_us = (to), __VA_ARGS__                                                        \
    }

static json_t *trace_of(const struct order *order)
{
    const char *commit = order->commit ? order->commit : "commit";
    int from_us = order->from_us, to_us = order->to_us;
    json_t *trace = json_pack(
        "{s:i, s:s, s:i, s:[{s:s, s:i, s:i}, {s:s, s:i, s:i}, {s:s, s:i, s:i}, {s:s, s:i, s:i}, {s:s, s:i, s:i}]}",
        "product_id", order->product ? order->product : PRODUCT, "outcome",
        order->outcome ? order->outcome : "created", "started_us", from_us - 50, "steps", "step", "wait",
        "begin_us", from_us - 50, "end_us", from_us - 40, "step", "lock", "begin_us", from_us - 40, "end_us",
        from_us, "step", "read", "begin_us", from_us, "end_us", to_us, "step", commit, "begin_us", to_us,
        "end_us", to_us + 5, "step", "unlock", "begin_us", to_us + 5, "end_us", to_us + 9);
    assert_non_null(trace);
    return trace;
}

/* The answer of GET /traces with up to COUNT orders; one with from_us 0 ends the list. */
static json_t *traces_of(const struct order *orders, size_t count)
{
    json_t *traces = json_array();
    for (size_t i = 0; i < count && orders[i].from_us; i++)
        assert_int_equal(json_array_append_new(traces, trace_of(&orders[i])), 0);
    json_t *answer = json_pack("{s:s, s:o}", "instance", "one", "traces", traces);
    assert_non_null(answer);
    return answer;
}

static void overlaps_of_the_traces_of_two_services(void **state)
{
    static const struct {
        const char *what;
        struct order one[3], other[2];
        size_t sections, overlaps;
    } CASES[] = {
        {"one after the other", {AT(3000, 3100), AT(1000, 1100)}, {{0}}, 2, 0},
        {"no orders", {{0}}, {{0}}, 0, 0},
        {"orders that touch", {AT(1000, 1100), AT(1100, 1200)}, {{0}}, 2, 0},
        /* The second waits from 1061, and the first has its answer at 1105. */
        {"waiting, or learning of the commit", {AT(1000, 1100), AT(1101, 1200)}, {{0}}, 2, 0},
        {"two within a third", {AT(1200, 1300), AT(1000, 1500), AT(1400, 1450)}, {{0}}, 3, 2},
        {"one begins before the last has ended",
         {AT(1000, 1200), AT(1199, 1400), AT(1400, 1500)},
         {{0}},
         3,
         1},
        {"two services", {AT(1000, 1100), AT(1300, 1400)}, {AT(1150, 1250), AT(1399, 1500)}, 4, 1},
        {"another product", {AT(1000, 1500), AT(1100, 1200, .product = PRODUCT + 1)}, {{0}}, 1, 0},
        {"begun before the cycle", {AT(999, 1500), AT(1000, 1200)}, {{0}}, 1, 0},
        {"not created, or without a commit",
         {AT(1000, 1500, .outcome = "lost-lock"), AT(1100, 1200, .commit = "insert")},
         {{0}},
         0,
         0},
        /* Of two transactions the first is what the lock guards. */
        {"two transactions", {AT(1000, 1100, .commit = "commit-stock"), AT(1050, 1200)}, {{0}}, 2, 1},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct section sections[2 * ROOM];
        json_t *one = traces_of(CASES[i].one, COUNT(CASES[i].one)),
               *other = traces_of(CASES[i].other, COUNT(CASES[i].other));
        size_t count = sections_of(one, PRODUCT, SINCE_US, sections, ROOM);
        count += sections_of(other, PRODUCT, SINCE_US, &sections[count], ROOM);
        size_t overlaps = sections_overlapping(sections, count);
        if (count != CASES[i].sections || overlaps != CASES[i].overlaps)
            fail_msg("%s: %zu sections, %zu overlap", CASES[i].what, count, overlaps);
        json_decref(one);
        json_decref(other);
    }
}

static void an_order_without_a_lock_has_no_section(void **state)
{
    struct section section;
    json_t *answer = json_pack("{s:[{s:i, s:s, s:[{s:s, s:i, s:i}]}]}", "traces", "product_id", PRODUCT,
                               "outcome", "created", "steps", "step", "commit", "begin_us", 1300, "end_us",
                               1400);
    assert_non_null(answer);
    assert_int_equal(sections_of(answer, PRODUCT, SINCE_US, &section, 1), 0);
    json_decref(answer);
}

static void more_than_was_asked_for_is_left_out(void **state)
{
    struct section sections[3] = {0};
    json_t *three = traces_of((struct order[]){AT(1000, 1100), AT(1200, 1300), AT(1400, 1500)}, 3);
    assert_int_equal(sections_of(three, PRODUCT, SINCE_US, sections, 2), 2);
    assert_int_equal(sections[2].from_us, 0);
    json_decref(three);
}

/* At 100. */
static void who_had_the_stock_in_hand(void **state)
{
    static const struct {
        const char *what, *step;
        int begin_us, end_us, ended_us, product;
        size_t moments;
    } ORDERS[] = {
        {"read before, and written after", "read", 80, 90, 120, PRODUCT, 1},
        {"taken before, and committed after", "take", 80, 90, 120, PRODUCT, 1},
        {"still reading", "read", 80, 101, 120, PRODUCT, 0},
        {"still waiting for its lock", "lock", 80, 90, 120, PRODUCT, 0},
        {"ended before", "read", 80, 90, 99, PRODUCT, 0},
        {"one statement that runs", "commit", 90, 120, 121, PRODUCT, 1},
        {"one statement that begins later", "commit", 101, 120, 121, PRODUCT, 0},
        {"another product", "read", 80, 90, 120, PRODUCT + 1, 0},
    };
    for (size_t i = 0; i < COUNT(ORDERS); i++) {
        json_auto_t *answer = json_pack(
            "{s:[{s:i, s:i, s:[{s:s, s:i, s:i}, {s:s, s:i, s:i}]}]}", "traces", "product_id",
            ORDERS[i].product, "ended_us", ORDERS[i].ended_us, "steps", "step", ORDERS[i].step, "begin_us",
            ORDERS[i].begin_us, "end_us", ORDERS[i].end_us, "step", "unlock", "begin_us", 119, "end_us", 119);
        if (moments_of(answer, PRODUCT, 100) != ORDERS[i].moments)
            fail_msg("%s", ORDERS[i].what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_had_the_stock_in_hand),
        cmocka_unit_test(overlaps_of_the_traces_of_two_services),
        cmocka_unit_test(an_order_without_a_lock_has_no_section),
        cmocka_unit_test(more_than_was_asked_for_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
