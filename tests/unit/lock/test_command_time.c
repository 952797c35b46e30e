/* How long one request to a lock's server may take. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "lock/lock_driver.h"

static void test_a_single_try_has_the_configured_time(void **state)
{
    struct lock_config config = lock_config;
    assert_int_equal(lock_command_ms(0), LOCK_TRY_MS);
    assert_int_equal(lock_command_ms(INT64_MIN), LOCK_TRY_MS);
    assert_int_equal(lock_command_ms(INT64_MAX), LOCK_COMMAND_MS);
    assert_int_equal(lock_try_ms(100), 100);
    config.try_ms = LOCK_COMMAND_MS;
    lock_configure(&config);
    assert_int_equal(lock_try_ms(100), LOCK_COMMAND_MS);
    assert_int_equal(lock_command_ms(0), LOCK_COMMAND_MS);
    assert_int_equal(lock_command_ms(INT64_MAX), LOCK_COMMAND_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_single_try_has_the_configured_time)};
    return cmocka_run_group_tests_name("lock command time", tests, NULL, NULL);
}
