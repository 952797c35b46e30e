/* Texts that were cut. */
#include "tests/unit/unit.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static void test_parts_of_characters_are_removed(void **state)
{
    static const struct {
        const char *text, *expected;
    } CASES[] = {
        {"", ""},
        {"aé€𝄞", "aé€𝄞"},
        {"'a\xc3'", "'a'"},
        {"'a\xe2\x82', '\xf0\x9d\x84'", "'a', ''"},
        {"\xa9\xff é", " é"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%s", CASES[i].text);
        text_mend(text);
        assert_string_equal(text, CASES[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_characters_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
