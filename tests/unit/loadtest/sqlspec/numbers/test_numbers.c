/* Numbers of sequences: two outcomes are the same if a one-to-one renaming of the numbers of each sequence makes them equal, and only then. */
#include "tests/unit/unit.h"

#include "loadtest/sqlspec/numbers/number_order.h"
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

/* A cursor that has passed the message of b, and not that of a: whether a's number is higher says if anybody will read it. */
static void test_the_sequence_of_numbers(void **state)
{
    static const char *const MESSAGES[] = {
        "{\"tables\": [[\"(" A ",a)\"], [\"(" B ",b)\"], [\"" B "\"]]}", /* a's is lower */
        "{\"tables\": [[\"(" B ",a)\"], [\"(" A ",b)\"], [\"" A "\"]]}",
        "{\"tables\": [[\"(1934617007,a)\"], [\"(" B ",b)\"], [\"" B "\"]]}", /* failed ones lie between */
    };
    static const struct numbers BY_SIZE = {.next = {1, 41}, .count = 2, .by_size = true};
    char *text[3];
    (void)state;
    assert_true(same(MESSAGES[0], MESSAGES[1]));
    for (size_t i = 0; i < 3; i++) {
        json_auto_t *value = json_loads(MESSAGES[i], 0, NULL);
        json_auto_t *copy = numbers_canonical(&BY_SIZE, value);
        assert_non_null(copy);
        text[i] = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
    }
    assert_string_not_equal(text[0], text[1]);
    assert_string_equal(text[1], text[2]);
    for (size_t i = 0; i < 3; i++)
        free(text[i]);
}

static void test_words_that_sort(void **state)
{
    (void)state;
    assert_true(number_order_matters("SELECT who FROM msg WHERE id > (SELECT pos FROM cur)"));
    assert_true(number_order_matters("UPDATE cur SET pos = (SELECT MAX(id) FROM msg)"));
    assert_true(number_order_matters("SELECT who FROM msg\n  ORDER BY id"));
    assert_true(number_order_matters("SELECT 1 FROM a, b WHERE a.id >= b.order_id"));
    assert_false(number_order_matters("UPDATE stock SET n = n - 1 WHERE id = 1 AND n >=\n 1"));
    assert_false(number_order_matters("INSERT INTO orders (who) VALUES ('a < b order by c')"));
    assert_false(number_order_matters("SELECT a FROM t WHERE a <> b"));
    assert_false(
        number_order_matters("INSERT INTO line SELECT LAST_INSERT_ID(), 1 FROM DUAL WHERE ROW_COUNT() > 0"));
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
        cmocka_unit_test(test_renaming),         cmocka_unit_test(test_the_sequence_of_numbers),
        cmocka_unit_test(test_words_that_sort),  cmocka_unit_test(test_numbers_that_look_alike),
        cmocka_unit_test(test_sequence_of_rows), cmocka_unit_test(test_small_numbers),
        cmocka_unit_test(test_many_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
