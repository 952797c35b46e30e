/* Where two outcomes differ: the table, the column or the step, and both values. */
#include "tests/unit/unit.h"

#include "loadtest/sqlspec/difference/difference.h"

#include <string.h>

static const struct numbers ONE = {.next = {1}, .count = 1};

/* Compares outcomes {"steps": …, "tables": …}; returns "where: one | other", static. */
static const char *difference(const char *one, const char *other, size_t count)
{
    static char text[700];
    struct difference found;
    json_auto_t *left = json_loads(one, 0, NULL), *right = json_loads(other, 0, NULL),
                *columns = json_loads("{\"t\": [\"id\", \"n\", \"name\"]}", 0, NULL);
    assert_non_null(left);
    assert_non_null(right);
    const struct difference_side left_side = {json_object_get(left, "steps"),
                                              json_object_get(left, "tables")},
                                 right_side = {json_object_get(right, "steps"),
                                               json_object_get(right, "tables")};
    assert_int_equal(difference_find(&ONE, &left_side, &right_side, columns, &found), count);
    (void)snprintf(text, sizeof text, "%s: %s | %s", found.where, found.one, found.other);
    return text;
}

#define TABLES(ROWS) "{\"steps\": {}, \"tables\": [" ROWS "]}"
#define STEP(RESULTS) "{\"steps\": {\"a\": [" RESULTS "]}, \"tables\": []}"

static void test_tables(void **state)
{
    (void)state;
    assert_string_equal(difference(TABLES("[\"t\", \"(1,2,x)\"]"), TABLES("[\"t\", \"(1,2,x)\"]"), 0),
                        ":  | ");
    assert_string_equal(difference(TABLES("[\"t\", \"(1,2,x)\"]"), TABLES("[\"t\", \"(1,3,x)\"]"), 2),
                        "table t, column n: 2 | 3");
    assert_string_equal(
        difference(TABLES("[\"t\", \"(1,2,\\\"a, \\\"\\\"b)\\\")\"]"), TABLES("[\"t\", \"(1,2,)\"]"), 2),
        "table t, column name: 'a, \"b)' | NULL");
    assert_string_equal(
        difference(TABLES("[\"t\", \"[1, 2, null]\"]"), TABLES("[\"t\", \"[1, 3, null]\"]"), 2),
        "table t, column n: 2 | 3");
    /* The nearest row is the partner. */
    assert_string_equal(
        difference(TABLES("[\"t\", \"(1,2,x)\"]"), TABLES("[\"t\", \"(7,8,x)\"], [\"t\", \"(1,3,x)\"]"), 3),
        "table t, column n: 2 | 3");
    assert_string_equal(difference(TABLES("[\"t\", \"(1,2,x)\"]"), TABLES(""), 1),
                        "table t: a row with id = 1, n = 2, name = x | no such row");
    assert_string_equal(difference(TABLES(""), TABLES("[\"t\", \"(1,2,x)\"]"), 1),
                        "table t: no such row | a row with id = 1, n = 2, name = x");
}

static void test_generated_numbers(void **state)
{
    (void)state;
    /* Only the number differs: no difference, but where all else is equal it is the one to show. */
    assert_string_equal(
        difference(TABLES("[\"t\", \"(1934617001,2,x)\"]"), TABLES("[\"t\", \"(1934617002,2,x)\"]"), 0),
        "table t, column id: 1 | 2");
    assert_string_equal(difference(TABLES("[\"t\", \"(1934617001,2,x)\"], [\"t\", \"(5,5,y)\"]"),
                                   TABLES("[\"t\", \"(1934617002,2,x)\"], [\"t\", \"(5,6,y)\"]"), 2),
                        "table t, column n: 5 | 6");
}

static void test_steps(void **state)
{
    (void)state;
    assert_string_equal(difference(STEP("{\"columns\": [\"n\"], \"rows\": [[\"10\"]]}"),
                                   STEP("{\"columns\": [\"n\"], \"rows\": [[null]]}"), 1),
                        "step a, column n: 10 | NULL");
    assert_string_equal(difference(STEP("{\"columns\": [\"n\"], \"rows\": [[\"10\"]]}"),
                                   STEP("{\"columns\": [\"n\"], \"rows\": []}"), 1),
                        "step a: 1 row | 0 rows");
    assert_string_equal(difference(STEP("{\"command\": \"BEGIN\"}, {\"command\": \"UPDATE 1\"}"),
                                   STEP("{\"command\": \"BEGIN\"}, {\"error\": \"a deadlock\"}"), 1),
                        "step a: UPDATE 1 | the error a deadlock");
    assert_string_equal(difference(STEP("{\"command\": \"UPDATE 1\"}"), STEP(""), 1),
                        "step a: UPDATE 1 | no result");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_generated_numbers),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
