/* What a terminal gets of a text that others wrote. */
#include "tests/unit/unit.h"

#include "loadtest/cli/columns.h"
#include "loadtest/cli/plain_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_what_controls_a_terminal_is_spelled(void **state)
{
    static const struct {
        const char *text, *plain;
    } CASES[] = {
        {"", ""},
        {"größer → 𝄞\n\tx\r\n", "größer → 𝄞\n\tx\r\n"},
        {"\033[31mred\a\b", "\\x1B[31mred\\x07\\x08"},
        {"over\rwritten\r", "over\\x0Dwritten\\x0D"},
        {"\xc2\x9b[2J\x7f", "\\u009B[2J\\x7F"},
        {"a\u202eb\u202c\u200bc", "a\\u202Eb\\u202C\\u200Bc"},
        {"\xff\xc3", "\\xFF\\xC3"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        char *plain = plain_copy(CASES[i].text);
        assert_string_equal(plain, CASES[i].plain);
        assert_int_equal(plain_text(CASES[i].text, NULL, 0), strlen(CASES[i].plain));
        free(plain);
    }
}

static void test_a_text_is_cut_between_characters(void **state)
{
    char text[6];
    assert_int_equal(plain_text("aé\033b", text, sizeof text), 8);
    assert_string_equal(text, "aé");
    assert_int_equal(plain_text("abcde", text, sizeof text), 5);
    assert_string_equal(text, "abcde");
}

static void test_what_is_printed(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const struct columns columns = columns_of(out, 2, 60);
    plain_print(out, "%s:\n", "\033]0;title\a");
    columns_names(&columns, (const char *const[]){"a\033", "b"});
    columns_cell(&columns, 0, "one \033[2J");
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "\\x1B]0;title\\x07:\na\\x1B                         b\none \\x1B[2J\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_controls_a_terminal_is_spelled),
        cmocka_unit_test(test_a_text_is_cut_between_characters),
        cmocka_unit_test(test_what_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
