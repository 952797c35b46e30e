/* What a command prints while it waits. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/wait_note.h"

#include <stdio.h>

/* In the place of the one that prints. */
static char said[200];
static int times;

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
    times++;
}

static void a_long_wait_is_named_once(void **state)
{
    struct wait_note note = {0};
    wait_note(&note, "the %s", "bus");
    assert_int_equal(times, 0);
    note.since_us = monotonic_us() - (int64_t)WAIT_NOTE_MS * 1000;
    wait_note(&note, "the %s", "bus");
    wait_note(&note, "the %s", "bus");
    assert_int_equal(times, 1);
    assert_string_equal(said, "waiting for the bus");
    assert_true(WAIT_NOTE_MS < 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_wait_is_named_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
