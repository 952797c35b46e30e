/* The valves: how many lines are written of what clients can cause as often as they like. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>

enum { SECOND_US = 1000000 };

static long now_us(void)
{
    return (long)monotonic_us();
}

static void test_one_line_a_second(void **state)
{
    struct log_valve valve = {0};
    long before_us = now_us();
    assert_true(log_valve_opens(&valve));
    assert_true(valve.next_us >= before_us + SECOND_US);
    valve.next_us = now_us() + 3600L * SECOND_US;
    assert_false(log_valve_opens(&valve));
}

static void test_a_burst_of_lines(void **state)
{
    struct log_valve valve = {0};
    char left_out[LOG_LEFT_OUT_SIZE];
    long before_us = now_us();
    for (int i = 1; i <= LOG_BURST; i++) {
        assert_true(log_valve_counts(&valve, left_out));
        assert_true(valve.next_us >= before_us + (long)i * SECOND_US); /* each line costs a second */
        assert_string_equal(left_out, "");
    }
    valve.next_us = now_us() + 3600L * SECOND_US;
    assert_false(log_valve_counts(&valve, left_out));
    assert_false(log_valve_counts(&valve, left_out));
    valve.next_us = now_us() + (long)(LOG_BURST - 1) * SECOND_US; /* room for one line */
    assert_true(log_valve_counts(&valve, left_out));
    assert_string_equal(left_out, "; 2 more such calls were not logged");
    valve.next_us = 0;
    assert_true(log_valve_counts(&valve, left_out));
    assert_string_equal(left_out, "");
}

/* One address of a network hides few others. */
static void test_shares(void **state)
{
    int clients[LOG_SHARES] = {0}, most = 0;
    for (int i = 0; i < LOG_SHARES; i++) {
        char client[32];
        snprintf(client, sizeof client, "192.168.0.%d", i);
        assert_true(log_share(client) < LOG_SHARES && log_share(client) == log_share(client));
        int count = ++clients[log_share(client)];
        most = count > most ? count : most;
    }
    assert_true(most <= 4);
    assert_true(log_share("") < LOG_SHARES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line_a_second),
        cmocka_unit_test(test_a_burst_of_lines),
        cmocka_unit_test(test_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
