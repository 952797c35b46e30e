/* Which strategies names and groups mean. */
#include "tests/unit/unit.h"

#include "loadtest/cli/selection.h"

#include <stdio.h>

static json_t *table;

static int make_table(void **state)
{
    table = json_pack("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}, {s:s, s:s}]", "name", "read-write", "guarantee",
                      "unsafe", "name", "mutex", "guarantee", "one-process", "name", "optimistic",
                      "guarantee", "safe", "name", "serializable", "guarantee", "safe");
    return table == NULL;
}

static int free_table(void **state)
{
    json_decref(table);
    return 0;
}

/* The names that LIST selects, with blanks between; "refused" if it is. */
static void check(const char *list, const char *expected)
{
    json_auto_t *rows = selection_rows(table, list);
    char names[256] = "";
    size_t i, used = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? " " : "",
                                 json_string_value(json_object_get(row, "name")));
    }
    const char *got = rows ? names : "refused";
    if (strcmp(got, expected) != 0)
        fail_msg("'%s' selects '%s', expected '%s'", list, got, expected);
}

static void test_lists(void **state)
{
    check("all", "read-write mutex optimistic serializable");
    check("mutex", "mutex");
    check("serializable,read-write", "read-write serializable"); /* in the table's order */
    check("safe", "optimistic serializable");
    check("unsafe,one-process", "read-write mutex");
    check("safe,optimistic,all", "read-write mutex optimistic serializable"); /* each once */
    check("while-lease-holds,mutex", "mutex");
}

static void test_what_is_refused(void **state)
{
    static const char *const BAD[] = {"",     "nosuch", "mutex,",       ",mutex", "mutex,,safe",
                                      "mute", "mutexx", "mutex nosuch", "SAFE"};
    for (size_t i = 0; i < COUNT(BAD); i++)
        check(BAD[i], "refused");
    check("while-lease-holds", "refused"); /* a group, and nobody is in it */
}

static void test_asked_for_by_name(void **state)
{
    assert_true(selection_names("safe,mutex", "mutex"));
    assert_false(selection_names("all", "mutex"));
    assert_false(selection_names("mutex-per-product", "mutex"));
    assert_false(selection_names("safe", "safe"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_asked_for_by_name),
    };
    return cmocka_run_group_tests(tests, make_table, free_table);
}
