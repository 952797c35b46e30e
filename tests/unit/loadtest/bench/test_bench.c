/* The benchmark's parts that need no servers: pgbench's scripts, other programs' reports, and the ratios' arithmetic. */
#include "tests/unit/unit.h"

#include "db/postgres/statements.h"
#include "loadtest/bench/cases.h"
#include "loadtest/bench/pgbench.h"
#include "loadtest/report/notes.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- scripts ------------------------------------------------------------------------------------------- */

static void assert_script(const struct script *script, const char *expected)
{
    char *text = script_text(script);
    assert_string_equal(text, expected);
    free(text);
}

static void test_values_take_the_places_of_parameters(void **state)
{
    const struct statement twelve = {"t", "VALUES ($12, $1, $2::bigint, $1)", 12};
    const struct script script = {
        "s",
        1,
        {{&twelve, {":a", ":b", "3", "4", "5", "6", "7", "8", "9", "10", "11", "NULL"}, NULL, NULL}},
    };
    assert_script(&script, "\\set product random(:first, :last)\nVALUES (NULL, :a, :b::bigint, :a);\n");
}

static void test_rows_are_kept_and_lines_added(void **state)
{
    const struct statement read = {"r", "SELECT $1", 1}, done = {"d", "COMMIT", 0};
    const struct script script = {
        "s",
        1,
        {{&read, {":product"}, "seen_", "\\set target :seen_count - 1"}, {.statement = &done}},
    };
    assert_script(&script, "\\set product random(:first, :last)\n"
                           "SELECT :product \\gset seen_\n\\set target :seen_count - 1\nCOMMIT;\n");
}

static void test_literals_hide_colons_and_dollars(void **state)
{
    const struct statement literals = {"l", "SELECT 'HH24:MI', 'a\\b', 'a\\:b', '$1', 'it''s :x', $1", 1};
    const struct script script = {"s", 1, {{&literals, {":v"}, NULL, NULL}}};
    assert_script(&script, "\\set product random(:first, :last)\n"
                           "SELECT E'HH24\\x3AMI', 'a\\b', E'a\\\\\\x3Ab', '$1', E'it''s \\x3Ax', :v;\n");
}

static void test_values_must_fit_the_statement(void **state)
{
    const struct statement two = {"t", "SELECT $1, $2", 2}, unknown = {"u", "SELECT $2", 1};
    const struct script few = {"s", 1, {{&two, {":a"}, NULL, NULL}}};
    const struct script many = {"s", 1, {{&two, {":a", ":b", ":c"}, NULL, NULL}}};
    const struct script none = {"s", 1, {{&unknown, {":a"}, NULL, NULL}}};
    assert_null(script_text(&few));
    assert_null(script_text(&many));
    assert_null(script_text(&none));
}

static void test_the_services_statements_make_scripts(void **state)
{
    const struct script *const scripts[] = {&SCRIPT_SELECT_FOR_UPDATE, &SCRIPT_ATOMIC_DECREMENT,
                                            &SCRIPT_ATOMIC_STATEMENT, &SCRIPT_BATCHED};
    for (size_t i = 0; i < COUNT(scripts); i++) {
        char *text = script_text(scripts[i]);
        assert_non_null(text);
        assert_null(strchr(text, '$'));
        free(text);
    }
    char *text = script_text(&SCRIPT_SELECT_FOR_UPDATE);
    assert_non_null(strstr(text, "BEGIN ISOLATION LEVEL READ COMMITTED;\n"));
    assert_non_null(strstr(text, " \\gset seen_\n\\set target :seen_count - :quantity\n"));
    assert_non_null(strstr(text, "\nCOMMIT;\n"));
    free(text);
}

/* Its arrays have as many elements as it says that it makes orders. */
static void test_a_batch_has_as_many_orders_as_it_says(void **state)
{
    const struct script_step *insert = &SCRIPT_BATCHED.steps[2];
    assert_ptr_equal(insert->statement, &ST_INSERT_BATCH);
    for (int i = 6; i < ST_INSERT_BATCH.parameters; i++) {
        int64_t elements = 1;
        for (const char *c = insert->values[i]; *c; c++)
            elements += *c == ',';
        assert_int_equal(elements, SCRIPT_BATCHED.orders);
    }
    char *text = script_text(&SCRIPT_BATCHED);
    assert_non_null(strstr(text, "\n\\set target :seen_count - 50 * :quantity\n"));
    free(text);
}

/* ---- reports ------------------------------------------------------------------------------------------- */

#define REPORT                                                                                               \
    "pgbench (15.20)\ntransaction type: x.pgbench\nnumber of clients: 16\n"                                  \
    "number of transactions actually processed: 16047\n"
#define RATE "tps = 8023.343302 (without initial connection time)\n"

static void test_report_is_read(void **state)
{
    struct pgbench_result result;
    assert_true(pgbench_parse(REPORT "number of failed transactions: 0 (0.000%)\n" RATE, &result));
    assert_int_equal(result.transactions, 16047);
    assert_true(result.per_s > 8023.3433 && result.per_s < 8023.3434);
    assert_true(pgbench_parse(REPORT RATE, &result)); /* before version 15 none is said to have failed */
}

static void test_report_with_failures_or_gaps_is_refused(void **state)
{
    struct pgbench_result result;
    assert_false(pgbench_parse(REPORT "number of failed transactions: 2 (0.012%)\n" RATE, &result));
    assert_false(pgbench_parse(REPORT, &result));
    assert_false(pgbench_parse("pgbench (15.20)\n" RATE, &result));
    assert_false(pgbench_parse("", &result));
}

/* ---- ratios -------------------------------------------------------------------------------------------- */

static const struct bench_case *find_case(const char *name)
{
    static struct bench_case cases[CASES_MAX];
    size_t count = bench_cases(cases);
    for (size_t i = 0; i < count; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    fail_msg("there is no case %s", name);
    return NULL;
}

static double real(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

static bool near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

static void test_names(void **state)
{
    static const char *const NAMES[] = {
        "hot/atomic-statement",
        "hot/select-for-update",
        "hot/atomic-decrement",
        "spread/atomic-statement",
        "crowd/512-vs-16",
        "crowd/select-for-update",
        "crowd/atomic-decrement",
        "latency/atomic-statement",
        "latency/select-for-update",
        "latency/atomic-decrement",
        "pages/30-open",
        "pages/class-of-40",
        "sold-out",
        "batched/vs-select-for-update",
        "batched/hot",
        "redis-stock/hot",
        "calls/atomic-statement",
        "calls/select-for-update",
        "calls/batched",
        "memory/1000-connections",
        "locks/redis-lock",
        "locks/zookeeper",
        "locks/zookeeper-contended",
        "locks/etcd",
    };
    struct bench_case cases[CASES_MAX];
    size_t count = bench_cases(cases), outside = 0;
    for (size_t i = 0; i < COUNT(NAMES); i++)
        assert_string_equal(cases[i].name, NAMES[i]);
    for (size_t i = 0; all_locks[i]; i++) {
        if (!all_locks[i]->server)
            continue;
        const struct bench_case *row = &cases[COUNT(NAMES) + outside++];
        char name[80];
        snprintf(name, sizeof name, "hand-over/%s", all_locks[i]->name);
        assert_string_equal(row->name, name);
        assert_ptr_equal(row->lock, all_locks[i]);
    }
    assert_int_equal(count, COUNT(NAMES) + outside);
    assert_true(outside > 20);
}

/* Does the list choose hot/atomic-statement? */
static bool chooses_hot(const char *list)
{
    struct bench_case cases[CASES_MAX];
    bool wanted[CASES_MAX];
    const struct texts only = {.item = {list}, .count = 1};
    size_t count = bench_cases(cases);
    return bench_cases_choose(cases, count, &only, wanted) && wanted[0];
}

static void test_patterns(void **state)
{
    assert_true(chooses_hot("hot/atomic-statement"));
    assert_true(chooses_hot("hot/*"));
    assert_true(chooses_hot("*atomic*"));
    assert_true(chooses_hot("atomic"));
    assert_false(chooses_hot("spread/*"));
    assert_true(chooses_hot("spread/*,hot/*"));
    assert_true(chooses_hot("atomic,spread/*"));
    assert_false(chooses_hot("spread/*,sold-out"));
    struct bench_case cases[CASES_MAX];
    bool wanted[CASES_MAX];
    size_t count = bench_cases(cases);
    static const char *const MATCH_NOTHING[] = {"atomic*", "", "hot/*,", "hot/*,nothing"};
    for (size_t i = 0; i < COUNT(MATCH_NOTHING); i++)
        assert_false(bench_cases_choose(
            cases, count, &(const struct texts){.item = {MATCH_NOTHING[i]}, .count = 1}, wanted));
    assert_true(bench_cases_choose(cases, count, &(const struct texts){.count = 0}, wanted));
    for (size_t i = 0; i < count; i++)
        assert_true(wanted[i]);
}

static void test_medians_and_extremes(void **state)
{
    const struct sample samples[] = {
        {.value = 0.5, .numerator = 100, .denominator = 200, .tuned = 110, .tuned_value = 0.55},
        {.value = 0.9, .numerator = 900, .denominator = 1000, .tuned = 1100, .tuned_value = 1.1},
        {.value = 2.0, .numerator = 20, .denominator = 10, .tuned = 30, .tuned_value = 3},
    };
    const struct tuning tuning = {.counts = {[TUNED_CLIENTS] = 1, [TUNED_WORKERS] = 3}};
    const struct bench_case *hot = find_case("hot/atomic-statement");
    json_t *row = bench_case_json(hot, &tuning, samples, 3);
    assert_string_equal(json_string_value(json_object_get(row, "name")), "hot/atomic-statement");
    assert_true(near(real(row, "value"), 0.9));
    assert_true(near(real(row, "min"), 0.5));
    assert_true(near(real(row, "max"), 2.0));
    assert_true(near(real(row, "goal"), 1));
    assert_true(near(real(row, "tuned_value"), 1.1));
    assert_true(near(real(row, "tuned_per_s"), 110));
    assert_int_equal(json_integer_value(json_object_get(row, "tuned_workers")), 3);
    assert_true(near(real(row, "numerator_per_s"), 100));
    assert_true(near(real(row, "denominator_per_s"), 200));
    assert_string_equal(json_string_value(json_object_get(row, "better")), "higher");
    /* The goal is for the default settings, whatever the tuned value is. */
    assert_true(json_is_false(json_object_get(row, "reached")));
    assert_string_equal(json_string_value(json_object_get(row, "with")),
                        "pgbench, 1 client; tuned: 3 workers");
    json_decref(row);

    row = bench_case_json(hot, &tuning, samples + 1, 2); /* of two the mean */
    assert_true(near(real(row, "value"), 1.45));
    assert_true(json_is_true(json_object_get(row, "reached")));
    json_decref(row);
}

static void test_less_memory_is_better(void **state)
{
    const struct bench_case *memory = find_case("memory/1000-connections");
    const struct sample little = {.value = 31.9}, much = {.value = 32.1};
    json_t *row = bench_case_json(memory, &(const struct tuning){0}, &little, 1);
    assert_true(json_is_true(json_object_get(row, "reached")));
    assert_string_equal(json_string_value(json_object_get(row, "better")), "lower");
    assert_null(json_object_get(row, "numerator_per_s"));
    json_decref(row);
    row = bench_case_json(memory, &(const struct tuning){0}, &much, 1);
    assert_true(json_is_false(json_object_get(row, "reached")));
    json_decref(row);
}

/* With --workers no other number is measured. */
static void test_without_a_search_nothing_is_tuned(void **state)
{
    const struct sample sample = {.value = 1.2, .numerator = 1200, .denominator = 1000};
    const struct tuning tuning = {.counts = {[TUNED_CLIENTS] = 2}};
    json_t *row = bench_case_json(find_case("hot/atomic-decrement"), &tuning, &sample, 1);
    assert_string_equal(json_string_value(json_object_get(row, "with")), "pgbench, 2 clients");
    assert_true(json_is_true(json_object_get(row, "reached")));
    assert_null(json_object_get(row, "tuned_value"));
    assert_null(json_object_get(row, "tuned_per_s"));
    assert_null(json_object_get(row, "tuned_workers"));
    json_decref(row);
}

static void assert_title(json_t *settings, const char *expected)
{
    char title[200];
    json_t *document = json_pack("{s:o}", "settings", settings);
    bench_result.title(document, title, sizeof title);
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

static void test_a_latency_is_a_ratio(void **state)
{
    const struct sample sample = {.value = 3.1, .facts = {10, 31}};
    json_t *row = bench_case_json(find_case("latency/atomic-statement"), &(const struct tuning){0}, &sample,
                                  1);
    assert_true(near(real(row, "goal"), 3));
    assert_true(json_is_false(json_object_get(row, "reached")));
    assert_string_equal(json_string_value(json_object_get(row, "better")), "lower");
    assert_true(near(real(row, "median_ms"), 10));
    assert_true(near(real(row, "p99_ms"), 31));
    assert_string_equal(json_string_value(json_object_get(row, "with")), "p99 31.0 ms; median 10.0 ms");
    json_decref(row);
}

static void test_facts_stand_beside(void **state)
{
    const struct sample sample = {.value = 1, .numerator = 2, .denominator = 2, .facts = {30, 40, 50}};
    const struct tuning tuning = {.counts = {[TUNED_CLIENTS] = 4, [TUNED_WORKERS] = 8}};
    json_t *row = bench_case_json(find_case("sold-out"), &tuning, &sample, 1);
    assert_true(near(real(row, "echo_per_s"), 30));
    assert_true(near(real(row, "pgbench_per_s"), 40));
    assert_true(near(real(row, "get_product_per_s"), 50));
    assert_int_equal(json_integer_value(json_object_get(row, "clients")), 4);
    assert_int_equal(json_integer_value(json_object_get(row, "tuned_workers")), 8);
    json_decref(row);
}

static void test_two_strategies_side_by_side(void **state)
{
    const struct sample sample = {.value = 8.5, .numerator = 8500, .denominator = 1000};
    json_t *row = bench_case_json(find_case("batched/vs-select-for-update"), &(const struct tuning){0},
                                  &sample, 1);
    assert_true(json_is_true(json_object_get(row, "reached")));
    assert_string_equal(json_string_value(json_object_get(row, "with")), "select-for-update");
    json_decref(row);
}

static void test_both_parts_of_a_ceiling_are_told(void **state)
{
    const struct sample sample = {
        .value = 0.75, .numerator = 15000, .denominator = 20000, .facts = {30000, 60000, 4, 5000}};
    json_t *row = bench_case_json(find_case("redis-stock/hot"), &(const struct tuning){0}, &sample, 1);
    assert_true(near(real(row, "goal"), 0.8));
    assert_true(near(real(row, "echo_per_s"), 30000));
    assert_true(near(real(row, "script_per_s"), 60000));
    assert_true(near(real(row, "written_s"), 4));
    assert_string_equal(json_string_value(json_object_get(row, "with")), "echo + script in Redis");
    json_t *document = json_pack("{s:[o]}", "ratios", row);
    struct notes notes = {0};
    assert_true(bench_result.notes(document, &notes));
    assert_string_equal(
        notes.item[0].text,
        "redis-stock/hot, for comparison: the same request without the database (POST /echo) 30000/s, "
        "the script in Redis without the service 60000/s. Compared with POST /echo alone: 0.500.");
    notes_free(&notes);
    json_decref(document);
}

static const struct tuning EIGHT_THREADS = {.counts = {[TUNED_THREADS] = 8}};

static void test_locks_are_held_against_their_servers(void **state)
{
    static const struct {
        const char *name;
        double goal;
        const char *with;
    } ROWS[] = {
        {"locks/redis-lock", 0.45, "redis-benchmark SET, 8 threads"},
        {"locks/zookeeper", 0.8, "a bare loop of its calls, 8 threads"},
        {"locks/zookeeper-contended", 2, "kazoo, 8 threads"},
        {"locks/etcd", 0.8, "a bare loop of its calls, 8 threads"},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const struct sample sample = {
            .value = ROWS[i].goal, .numerator = 1000 * ROWS[i].goal, .denominator = 1000};
        json_t *row = bench_case_json(find_case(ROWS[i].name), &EIGHT_THREADS, &sample, 1);
        assert_true(near(real(row, "goal"), ROWS[i].goal));
        assert_true(json_is_true(json_object_get(row, "reached")));
        assert_string_equal(json_string_value(json_object_get(row, "with")), ROWS[i].with);
        assert_int_equal(json_integer_value(json_object_get(row, "threads")), 8);
        json_decref(row);
    }
}

static const struct sample HANDED_OVER = {
    .value = 12.5, .numerator = 5000, .denominator = 400, .facts = {2.5, 0.2, 0, 0}};

static void test_a_hand_over_has_no_goal(void **state)
{
    json_t *row = bench_case_json(find_case("hand-over/redis-lock"), &EIGHT_THREADS, &HANDED_OVER, 1);
    assert_true(near(real(row, "value"), 12.5));
    assert_true(json_is_null(json_object_get(row, "goal")));
    assert_true(json_is_null(json_object_get(row, "reached")));
    assert_string_equal(json_string_value(json_object_get(row, "better")), "lower");
    assert_true(near(real(row, "hand_over_ms"), 2.5));
    assert_true(near(real(row, "cycle_ms"), 0.2));
    assert_true(json_is_real(json_object_get(row, "wake_ups_per_release"))); /* 0 is told, too */
    assert_string_equal(json_string_value(json_object_get(row, "with")),
                        "2.50 ms; alone 0.20 ms; 0.0 wake-ups");
    json_decref(row);
}

static void test_what_is_not_available_says_why(void **state)
{
    json_t *row = bench_case_unavailable_json(find_case("locks/etcd"), "etcd: it is not installed");
    assert_true(json_is_null(json_object_get(row, "value")));
    assert_true(json_is_null(json_object_get(row, "reached")));
    assert_true(near(real(row, "goal"), 0.8));
    assert_string_equal(json_string_value(json_object_get(row, "reason")), "etcd: it is not installed");
    json_decref(row);
}

static void test_notes_count_goals_and_tell_what_is_missing(void **state)
{
    const struct sample slow = {.value = 0.5, .numerator = 1, .denominator = 2};
    struct sample shared = HANDED_OVER;
    shared.facts[3] = 0.25;
    json_t *document = json_pack(
        "{s:[o, o, o, o]}", "ratios", bench_case_json(find_case("locks/zookeeper"), &EIGHT_THREADS, &slow, 1),
        bench_case_json(find_case("hand-over/redis-lock"), &EIGHT_THREADS, &HANDED_OVER, 1),
        bench_case_json(find_case("hand-over/redis-registry-shared"), &EIGHT_THREADS, &shared, 1),
        bench_case_unavailable_json(find_case("locks/etcd"), "etcd: it is not installed"));
    struct notes notes = {0};
    assert_true(bench_result.notes(document, &notes));
    assert_int_equal(notes.count, 3);
    assert_non_null(
        strstr(notes.item[0].text, "hand-over/redis-registry-shared: in 25 % of all acquisitions"));
    assert_string_equal(notes.item[1].text, "locks/etcd: not available: etcd: it is not installed");
    assert_string_equal(notes.item[2].text, "0 of 1 goals reached.");
    notes_free(&notes);
    json_decref(document);
}

/* ---- other programs -------------------------------------------------------------------------------------- */

static void test_redis_benchmark_is_read(void **state)
{
    double per_s;
    assert_true(
        redis_benchmark_parse("\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"90909.09\",\"0.3\"\n", &per_s));
    assert_true(near(per_s, 90909.09));
    assert_true(
        redis_benchmark_parse("\"SET\",\"90909.09\"\n", &per_s)); /* before version 7 there is no heading */
    assert_false(redis_benchmark_parse("\"test\",\"rps\"\n", &per_s));
    assert_false(redis_benchmark_parse("\"SET\",\"nan\"\n", &per_s));
    assert_false(redis_benchmark_parse("", &per_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_take_the_places_of_parameters),
        cmocka_unit_test(test_rows_are_kept_and_lines_added),
        cmocka_unit_test(test_literals_hide_colons_and_dollars),
        cmocka_unit_test(test_values_must_fit_the_statement),
        cmocka_unit_test(test_the_services_statements_make_scripts),
        cmocka_unit_test(test_a_batch_has_as_many_orders_as_it_says),
        cmocka_unit_test(test_report_is_read),
        cmocka_unit_test(test_report_with_failures_or_gaps_is_refused),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_medians_and_extremes),
        cmocka_unit_test(test_less_memory_is_better),
        cmocka_unit_test(test_without_a_search_nothing_is_tuned),
        cmocka_unit_test(test_the_title_tells_the_settings),
        cmocka_unit_test(test_a_latency_is_a_ratio),
        cmocka_unit_test(test_facts_stand_beside),
        cmocka_unit_test(test_two_strategies_side_by_side),
        cmocka_unit_test(test_both_parts_of_a_ceiling_are_told),
        cmocka_unit_test(test_locks_are_held_against_their_servers),
        cmocka_unit_test(test_a_hand_over_has_no_goal),
        cmocka_unit_test(test_what_is_not_available_says_why),
        cmocka_unit_test(test_notes_count_goals_and_tell_what_is_missing),
        cmocka_unit_test(test_redis_benchmark_is_read),
    };
    return cmocka_run_group_tests_name("loadtest bench", tests, NULL, NULL);
}
