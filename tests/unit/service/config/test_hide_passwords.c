/* The command line: read whole, and shown without passwords. */
#include "tests/unit/unit.h"

#include "service/config/hide_passwords.h"

#include <stdlib.h>

static void test_what_is_hidden(void **state)
{
    static const struct {
        const char *given, *shown;
    } arguments[] = {
        {"order-service://x", "order-service://x"}, /* the program's own name */
        {"--listen", "--listen"},
        {"127.0.0.1:80", "127.0.0.1:80"},
        {"", ""},
        {"--database-url=postgresql://u:pw@h/d", "--database-url=postgresql://********"},
        {"redis://", "redis://"},
        {"redis://:a@h,redis://:b@i", "redis://*****************"},
        {"host=h password=pw user=u", "host=h password**********"},
        {"password=a://b", "password******"},
    };
    enum { ARGC = COUNT(arguments) };
    char *argv[ARGC + 1] = {NULL};
    for (int i = 0; i < ARGC; i++)
        assert_non_null(argv[i] = strdup(arguments[i].given));
    char **copy = hide_passwords(ARGC, argv);
    assert_non_null(copy);
    for (int i = 0; i < ARGC; i++) {
        assert_string_equal(copy[i], arguments[i].given);
        assert_string_equal(argv[i], arguments[i].shown);
        free(copy[i]);
        free(argv[i]);
    }
    assert_null(copy[ARGC]);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_hidden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
