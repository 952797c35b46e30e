/* How a result of bench is printed: its title and its notes. tests/lab/test_bench.py tests how it is made. */
#include "tests/unit/unit.h"

#include "loadtest/measured/measured.h"

static void assert_title(json_t *settings, const char *expected)
{
    char title[200];
    json_t *document = json_pack("{s:o}", "settings", settings);
    assert_true(table_sentence(bench_result.title, document, title, sizeof title));
    assert_string_equal(title, expected);
    json_decref(document);
}

static void test_the_title_tells_the_settings(void **state)
{
#define IN_TURN "oth sides measured in turn in one run; medians"
    assert_title(json_pack("{s:i}", "workers", 0), "The service with its default settings; b" IN_TURN);
    assert_title(json_pack("{s:i}", "workers", 3), "The service with 3 workers; b" IN_TURN);
    assert_title(json_object(), "B" IN_TURN); /* a result of an earlier version */
}

static void test_both_parts_of_a_ceiling_are_told(void **state)
{
    json_t *document = json_pack("{s:[{s:s, s:f, s:f, s:f}]}", "ratios", "name", "redis-stock/hot",
                                 "numerator_per_s", 15000.0, "echo_per_s", 30000.0, "script_per_s", 60000.0);
    struct notes notes = {0};
    bench_result.notes(document, &notes);
    assert_string_equal(
        notes.item[0].text,
        "redis-stock/hot, for comparison: the same request without the database (POST /echo) 30000/s, "
        "the script in Redis without the service 60000/s. Compared with POST /echo alone: 0.500.");
    notes_free(&notes);
    json_decref(document);
}

static void test_notes_count_goals_and_tell_what_is_missing(void **state)
{
    json_t *document = json_pack("{s:[{s:s, s:b}, {s:s, s:f}, {s:s, s:f}, {s:s, s:n, s:s}]}", "ratios",
                                 "name", "locks/zookeeper", "reached", 0, "name", "hand-over/redis-lock",
                                 "together", 0.0, "name", "hand-over/redis-registry-shared", "together", 0.25,
                                 "name", "locks/etcd", "reached", "reason", "etcd: it is not installed");
    struct notes notes = {0};
    bench_result.notes(document, &notes);
    assert_int_equal(notes.count, 3);
    assert_non_null(
        strstr(notes.item[0].text, "hand-over/redis-registry-shared: in 25 % of all acquisitions"));
    assert_string_equal(notes.item[1].text, "locks/etcd: not available: etcd: it is not installed");
    assert_string_equal(notes.item[2].text, "0 of 1 goals reached.");
    notes_free(&notes);
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_title_tells_the_settings),
        cmocka_unit_test(test_both_parts_of_a_ceiling_are_told),
        cmocka_unit_test(test_notes_count_goals_and_tell_what_is_missing),
    };
    return cmocka_run_group_tests_name("results of bench", tests, NULL, NULL);
}
