/* The benchmark's parts that need no servers: pgbench's scripts and reports, and the ratios' arithmetic. */
#include "tests/unit/unit.h"

#include "db/statements.h"
#include "loadtest/bench_cases.h"
#include "loadtest/bench_pgbench.h"

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
    (void)state;
    const struct statement twelve = {"t", "VALUES ($12, $1, $2::bigint, $1)", 12};
    const struct script script = {
        "s",
        {{&twelve, {":a", ":b", "3", "4", "5", "6", "7", "8", "9", "10", "11", "NULL"}, NULL, NULL}},
    };
    assert_script(&script, "\\set product random(:first, :last)\nVALUES (NULL, :a, :b::bigint, :a);\n");
}

static void test_rows_are_kept_and_lines_added(void **state)
{
    (void)state;
    const struct statement read = {"r", "SELECT $1", 1}, done = {"d", "COMMIT", 0};
    const struct script script = {
        "s",
        {{&read, {":product"}, "seen_", "\\set target :seen_count - 1"}, {.statement = &done}},
    };
    assert_script(&script, "\\set product random(:first, :last)\n"
                           "SELECT :product \\gset seen_\n\\set target :seen_count - 1\nCOMMIT;\n");
}

static void test_literals_hide_colons_and_dollars(void **state)
{
    (void)state;
    const struct statement literals = {"l", "SELECT 'HH24:MI', 'a\\b', 'a\\:b', '$1', 'it''s :x', $1", 1};
    const struct script script = {"s", {{&literals, {":v"}, NULL, NULL}}};
    assert_script(&script, "\\set product random(:first, :last)\n"
                           "SELECT E'HH24\\x3AMI', 'a\\b', E'a\\\\\\x3Ab', '$1', E'it''s \\x3Ax', :v;\n");
}

static void test_values_must_fit_the_statement(void **state)
{
    (void)state;
    const struct statement two = {"t", "SELECT $1, $2", 2}, unknown = {"u", "SELECT $2", 1};
    const struct script few = {"s", {{&two, {":a"}, NULL, NULL}}};
    const struct script many = {"s", {{&two, {":a", ":b", ":c"}, NULL, NULL}}};
    const struct script none = {"s", {{&unknown, {":a"}, NULL, NULL}}};
    assert_null(script_text(&few));
    assert_null(script_text(&many));
    assert_null(script_text(&none));
}

static void test_the_services_statements_make_scripts(void **state)
{
    (void)state;
    const struct script *const scripts[] = {&SCRIPT_SELECT_FOR_UPDATE, &SCRIPT_ATOMIC_DECREMENT,
                                            &SCRIPT_ATOMIC_STATEMENT};
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

/* ---- reports ------------------------------------------------------------------------------------------- */

#define REPORT                                                                                               \
    "pgbench (15.20)\ntransaction type: x.pgbench\nnumber of clients: 16\n"                                  \
    "number of transactions actually processed: 16047\n"
#define RATE "tps = 8023.343302 (without initial connection time)\n"

static void test_report_is_read(void **state)
{
    (void)state;
    struct pgbench_result result;
    assert_true(pgbench_parse(REPORT "number of failed transactions: 0 (0.000%)\n" RATE, &result));
    assert_int_equal(result.transactions, 16047);
    assert_true(result.per_s > 8023.3433 && result.per_s < 8023.3434);
    assert_true(pgbench_parse(REPORT RATE, &result)); /* before version 15 none is said to have failed */
}

static void test_report_with_failures_or_gaps_is_refused(void **state)
{
    (void)state;
    struct pgbench_result result;
    assert_false(pgbench_parse(REPORT "number of failed transactions: 2 (0.012%)\n" RATE, &result));
    assert_false(pgbench_parse(REPORT, &result));
    assert_false(pgbench_parse("pgbench (15.20)\n" RATE, &result));
    assert_false(pgbench_parse("", &result));
}

/* ---- ratios -------------------------------------------------------------------------------------------- */

static const struct bench_case *find_case(const char *name)
{
    for (size_t i = 0; i < bench_case_count; i++)
        if (strcmp(bench_cases[i].name, name) == 0)
            return &bench_cases[i];
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
    (void)state;
    static const char *const NAMES[] = {
        "hot/atomic-statement",    "hot/select-for-update", "hot/atomic-decrement",
        "spread/atomic-statement", "crowd/512-vs-16",       "sold-out",
        "memory/1000-connections",
    };
    assert_int_equal(bench_case_count, COUNT(NAMES));
    for (size_t i = 0; i < COUNT(NAMES); i++)
        assert_string_equal(bench_cases[i].name, NAMES[i]);
}

static void test_patterns(void **state)
{
    (void)state;
    const struct bench_case *hot = find_case("hot/atomic-statement");
    assert_true(bench_case_matches(hot, "hot/atomic-statement"));
    assert_true(bench_case_matches(hot, "hot/*"));
    assert_true(bench_case_matches(hot, "*atomic*"));
    assert_true(bench_case_matches(hot, "atomic"));
    assert_false(bench_case_matches(hot, "spread/*"));
    assert_false(bench_case_matches(hot, "atomic*"));
}

static void test_medians_and_extremes(void **state)
{
    (void)state;
    const struct sample samples[] = {
        {.value = 0.5, .numerator = 100, .denominator = 200},
        {.value = 0.9, .numerator = 900, .denominator = 1000},
        {.value = 2.0, .numerator = 20, .denominator = 10},
    };
    const struct tuning tuning = {.clients = 1, .workers = 3};
    const struct bench_case *hot = find_case("hot/atomic-statement");
    json_t *row = bench_case_json(hot, &tuning, samples, 3);
    assert_string_equal(json_string_value(json_object_get(row, "name")), "hot/atomic-statement");
    assert_true(near(real(row, "value"), 0.9));
    assert_true(near(real(row, "min"), 0.5));
    assert_true(near(real(row, "max"), 2.0));
    assert_true(near(real(row, "goal"), 0.95));
    assert_true(near(real(row, "numerator_per_s"), 100));
    assert_true(near(real(row, "denominator_per_s"), 200));
    assert_string_equal(json_string_value(json_object_get(row, "better")), "higher");
    assert_true(json_is_false(json_object_get(row, "reached")));
    assert_string_equal(json_string_value(json_object_get(row, "with")), "3 workers; pgbench, 1 client");
    json_decref(row);

    row = bench_case_json(hot, &tuning, samples + 1, 2); /* of two the mean */
    assert_true(near(real(row, "value"), 1.45));
    assert_true(json_is_true(json_object_get(row, "reached")));
    json_decref(row);
}

static void test_less_memory_is_better(void **state)
{
    (void)state;
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

static void test_facts_stand_beside(void **state)
{
    (void)state;
    const struct sample sample = {.value = 1, .numerator = 2, .denominator = 2, .facts = {30, 40, 50}};
    json_t *row = bench_case_json(find_case("sold-out"), &(const struct tuning){4, 8}, &sample, 1);
    assert_true(near(real(row, "echo_per_s"), 30));
    assert_true(near(real(row, "pgbench_per_s"), 40));
    assert_true(near(real(row, "get_product_per_s"), 50));
    assert_int_equal(json_integer_value(json_object_get(row, "clients")), 4);
    assert_int_equal(json_integer_value(json_object_get(row, "workers")), 8);
    json_decref(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_take_the_places_of_parameters),
        cmocka_unit_test(test_rows_are_kept_and_lines_added),
        cmocka_unit_test(test_literals_hide_colons_and_dollars),
        cmocka_unit_test(test_values_must_fit_the_statement),
        cmocka_unit_test(test_the_services_statements_make_scripts),
        cmocka_unit_test(test_report_is_read),
        cmocka_unit_test(test_report_with_failures_or_gaps_is_refused),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_medians_and_extremes),
        cmocka_unit_test(test_less_memory_is_better),
        cmocka_unit_test(test_facts_stand_beside),
    };
    return cmocka_run_group_tests_name("loadtest bench", tests, NULL, NULL);
}
