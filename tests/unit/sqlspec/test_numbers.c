/* Numbers of sequences: two outcomes are the same if a one-to-one renaming of the numbers of each sequence makes them equal, and only then. */
#include "tests/unit/unit.h"

#include "loadtest/sqlspec/numbers/numbers.h"

#include <stdlib.h>
#include <string.h>

/* A and B stand for the first two numbers of one sequence, C and D for those of another one. */
#define A "1934617001"
#define B "1934617002"
#define C "1934717001"
#define D "1934717002"

static const struct numbers TWO = {.next = {1, 41}, .count = 2};

static char *canonical(const char *text)
{
    json_auto_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    json_auto_t *copy = numbers_canonical(&TWO, value);
    assert_non_null(copy);
    return json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
}

static bool same(const char *one, const char *other)
{
    char *left = canonical(one), *right = canonical(other);
    bool equal = strcmp(left, right) == 0;
    free(left);
    free(right);
    return equal;
}

static void test_renaming(void **state)
{
    (void)state;
    /* The header of a has the first or the second number, and its line goes with it. */
    assert_true(same("{\"tables\": [[\"o\", \"(" A ",a)\"], [\"o\", \"(" B ",b)\"], [\"l\", \"(" A ",1)\"]]}",
                     "{\"tables\": [[\"l\", \"(" B ",1)\"], [\"o\", \"(" B ",a)\"], [\"o\", \"(" A
                     ",b)\"]]}"));
    /* The line of a is attached to the header of b. */
    assert_false(
        same("{\"tables\": [[\"o\", \"(" A ",a)\"], [\"o\", \"(" B ",b)\"], [\"l\", \"(" A ",1)\"]]}",
             "{\"tables\": [[\"o\", \"(" A ",a)\"], [\"o\", \"(" B ",b)\"], [\"l\", \"(" B ",1)\"]]}"));
    /* Both lines on one header, or one on each: the headers look alike. */
    assert_false(same(
        "{\"tables\": [[\"o\", \"" A "\"], [\"o\", \"" B "\"], [\"l\", \"" A "\"], [\"l\", \"" A "\"]]}",
        "{\"tables\": [[\"o\", \"" A "\"], [\"o\", \"" B "\"], [\"l\", \"" A "\"], [\"l\", \"" B "\"]]}"));
    /* Two numbers in one row, the same one or different ones. */
    assert_false(same("[[\"" A "\", \"" A "\"]]", "[[\"" A "\", \"" B "\"]]"));
    assert_true(same("[[\"" A "\", \"" B "\"]]", "[[\"" B "\", \"" A "\"]]"));
    /* Numbers of different sequences stay apart. */
    assert_false(same("[[\"" A "\"]]", "[[\"" C "\"]]"));
    assert_true(same("[[\"" A " " D "\"]]", "[[\"" B " " C "\"]]"));
    /* Other numbers are values. */
    assert_false(same("[[\"1\"]]", "[[\"2\"]]"));
    assert_false(same("[[\"1934617001000\"]]", "[[\"1934617002000\"]]"));
    assert_false(same("[[\"1934517001\"]]", "[[\"1934517002\"]]"));
    assert_false(same("[[\"" A "\"]]", "[[\"1\"]]"));
    assert_false(same("[[\"" A "\"]]", "[[null]]"));
}

/* A circle of four rows and two circles of two rows: every number has the same places in both. */
static void test_numbers_that_look_alike(void **state)
{
    (void)state;
    static const char one[] = "{\"tables\": [[\"" A "\", \"" B "\"], [\"" B
                              "\", \"1934617003\"], [\"1934617003\", \"1934617004\"], "
                              "[\"1934617004\", \"" A "\"]]}",
                      turned[] = "{\"tables\": [[\"" B "\", \"" A "\"], [\"" A "\", \"1934617004\"], "
                                 "[\"1934617004\", \"1934617003\"], [\"1934617003\", \"" B "\"]]}",
                      two[] = "{\"tables\": [[\"" A "\", \"" B "\"], [\"" B "\", \"" A
                              "\"], [\"1934617003\", \"1934617004\"], "
                              "[\"1934617004\", \"1934617003\"]]}";
    assert_true(same(one, turned));
    assert_false(same(one, two));
}

static void test_sequence_of_rows(void **state)
{
    (void)state;
    static const char one[] = "{\"rows\": [[\"" A "\", \"x\"], [\"" B "\", \"y\"]]}",
                      other[] = "{\"rows\": [[\"" A "\", \"y\"], [\"" B "\", \"x\"]]}";
    assert_false(same(one, other));
    assert_true(same("{\"rows\": [[\"" A "\", \"x\"], [\"" B "\", \"y\"]], \"unordered\": true}",
                     "{\"rows\": [[\"" A "\", \"y\"], [\"" B "\", \"x\"]], \"unordered\": true}"));
}

static void test_small_numbers(void **state)
{
    (void)state;
    json_auto_t *value = json_loads(
        "{\"rows\": [[\"(" B ",a)\", null, \"" D "\"], [\"" A "x\", 5]], \"unordered\": true}", 0, NULL);
    json_auto_t *small = numbers_small(&TWO, value);
    char *text = json_dumps(small, JSON_COMPACT);
    assert_string_equal(text, "{\"rows\":[[\"(2,a)\",null,\"42\"],[\"1x\",5]]}");
    free(text);
}

/* More numbers than are renamed: they are values. */
static void test_many_numbers(void **state)
{
    (void)state;
    json_auto_t *value = json_array();
    char text[20];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(text, sizeof text, "%d", 1934617001 + i);
        assert_int_equal(json_array_append_new(value, json_pack("[s]", text)), 0);
    }
    json_auto_t *copy = numbers_canonical(&TWO, value);
    assert_true(json_equal(copy, value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renaming),         cmocka_unit_test(test_numbers_that_look_alike),
        cmocka_unit_test(test_sequence_of_rows), cmocka_unit_test(test_small_numbers),
        cmocka_unit_test(test_many_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
