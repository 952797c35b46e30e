/* Secrets: words that nobody can guess, and the one comparison of them. What its time depends on is seen by reading it:
 * base/secret.c has no way out of its loop. */
#include "tests/unit/unit.h"

#include "base/secret.h"

#include <unistd.h>

enum { LENGTH = 32 };

static void test_secrets_differ(void **state)
{
    char one[LENGTH + 1], other[LENGTH + 1], none[1] = "x";
    make_secret(one, LENGTH);
    make_secret(other, LENGTH);
    assert_string_not_equal(one, other);
    assert_int_equal(strspn(one, "abcdefghjkmnpqrstuvwxyz23456789"), LENGTH);
    assert_int_equal(strlen(one), LENGTH);
    make_secret(none, 0);
    assert_string_equal(none, "");
}

static void test_equal(void **state)
{
    char secret[LENGTH + 1], copy[LENGTH + 1];
    make_secret(secret, LENGTH);
    memcpy(copy, secret, sizeof copy);
    assert_true(same_secret(copy, secret) && same_secret(secret, secret));
    assert_true(same_secret("", "") && same_secret("x", "x") && same_secret("\xc3\xa9", "\xc3\xa9"));
}

/* The first, the last and each one between, by each single bit. */
static void test_one_bit_differs(void **state)
{
    char secret[LENGTH + 1], guess[LENGTH + 1];
    make_secret(secret, LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(guess, secret, sizeof guess);
            guess[i] = (char)(guess[i] ^ 1 << bit);
            if (same_secret(guess, secret) || same_secret(secret, guess))
                fail_msg("character %zu, bit %d", i, bit);
        }
}

/* Also where the one begins with the other, or repeats it, with the NUL that the comparison reads behind it. */
static void test_another_length(void **state)
{
    static const char *const pairs[][2] = {{"", "a"},          {"a", "ab"},           {"abc", "abcabc"},
                                           {"aaa", "aaaaaaa"}, {"abc", "abc\x01xyz"}, {"abc", "abc "}};
    for (size_t i = 0; i < COUNT(pairs); i++)
        if (same_secret(pairs[i][0], pairs[i][1]) || same_secret(pairs[i][1], pairs[i][0]))
            fail_msg("'%s' and '%s'", pairs[i][0], pairs[i][1]);
    char secret[LENGTH + 1];
    make_secret(secret, LENGTH);
    for (size_t length = 0; length < LENGTH; length++) {
        char part[LENGTH + 1] = "";
        memcpy(part, secret, length);
        assert_false(same_secret(part, secret));
        assert_false(same_secret(secret + LENGTH - length, secret));
    }
}

/* A text ends at its NUL, wherever the memory ends. */
static void test_a_nul_inside(void **state)
{
    assert_true(same_secret("abc\0def", "abc"));
    assert_true(same_secret("abc", "abc\0def"));
    assert_false(same_secret("\0abc", "abc"));
    assert_false(same_secret("abc\0def", "abcdef"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets_differ),  cmocka_unit_test(test_equal),
        cmocka_unit_test(test_one_bit_differs), cmocka_unit_test(test_another_length),
        cmocka_unit_test(test_a_nul_inside),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
