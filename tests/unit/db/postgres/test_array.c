/* Arrays as text for PostgreSQL: nothing that is in an element can end it, and null is not "NULL". */
#include "tests/unit/unit.h"

#include "db/postgres/array.h"

#include <stdlib.h>

static void assert_array(const char *const *elements, size_t count, const char *expected)
{
    struct array array;
    const char *text;
    arrays_begin(&array, 1);
    for (size_t i = 0; i < count; i++)
        array_add(&array, elements[i]);
    assert_true(arrays_end(&array, 1, &text));
    assert_string_equal(text, expected);
    arrays_free(&array, 1);
}

#define ASSERT_ARRAY(expected, ...)                                                                          \
    assert_array((const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})), expected)

static void test_text(void **state)
{
    assert_array(NULL, 0, "{}");
    ASSERT_ARRAY("{\"a\"}", "a");
    ASSERT_ARRAY("{\"a\",\"b c\"}", "a", "b c");
    ASSERT_ARRAY("{\"\"}", "");
    ASSERT_ARRAY("{\"\",\"\"}", "", "");
    ASSERT_ARRAY("{NULL}", NULL);
    ASSERT_ARRAY("{NULL,\"NULL\",\"null\",NULL}", NULL, "NULL", "null", NULL);
    ASSERT_ARRAY("{\",\",\"{\",\"}\",\"{1,2}\"}", ",", "{", "}", "{1,2}");
    ASSERT_ARRAY("{\"\\\"\",\"a\\\"b\"}", "\"", "a\"b");
    ASSERT_ARRAY("{\"\\\\\",\"\\\\\\\"\"}", "\\", "\\\"");
    ASSERT_ARRAY("{\"'\",\"$1\",\" a \",\"\n\t\"}", "'", "$1", " a ", "\n\t");
    ASSERT_ARRAY("{\"Ä€😀\"}", "Ä€😀");
}

static void test_numbers(void **state)
{
    struct array array;
    const char *text;
    arrays_begin(&array, 1);
    array_add_number(&array, 0);
    array_add_number(&array, INT64_MAX);
    array_add_number(&array, INT64_MIN);
    array_add_number(&array, -1);
    assert_true(arrays_end(&array, 1, &text));
    assert_string_equal(text, "{0,9223372036854775807,-9223372036854775808,-1}");
    arrays_free(&array, 1);
}

static void test_columns_grow_side_by_side(void **state)
{
    enum { COLUMNS = 3, ROWS = 5000 };
    struct array arrays[COLUMNS];
    const char *values[COLUMNS];
    arrays_begin(arrays, COLUMNS);
    for (int i = 0; i < ROWS; i++) {
        array_add_number(&arrays[0], 1);
        array_add(&arrays[1], "\"");
        array_add(&arrays[2], NULL);
    }
    assert_true(arrays_end(arrays, COLUMNS, values));
    assert_int_equal(strlen(values[0]), 1 + 2 * ROWS);
    assert_int_equal(strlen(values[1]), 1 + 5 * ROWS);
    assert_int_equal(strlen(values[2]), 1 + 5 * ROWS);
    arrays_free(arrays, COLUMNS);
}

static void test_they_may_be_freed_before_their_end(void **state)
{
    struct array arrays[2];
    arrays_begin(arrays, 2);
    array_add(&arrays[1], "x");
    arrays_free(arrays, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_columns_grow_side_by_side),
        cmocka_unit_test(test_they_may_be_freed_before_their_end),
    };
    return cmocka_run_group_tests_name("array", tests, NULL, NULL);
}
