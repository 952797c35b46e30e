/* Which command to Redis a request repeats in vain. */
#include "tests/unit/unit.h"

#include "loadtest/own/redis/idle_repeats.h"

enum { A, B };
static struct idle_repeats repeats;
static uint64_t lock, other_lock, get;

static int set_up(void **state)
{
    repeats = (struct idle_repeats){0};
    lock = idle_repeats_command("SET lock:1 t NX", "lock:1\0");
    other_lock = idle_repeats_command("SET lock:2 t NX", "lock:2\0");
    get = idle_repeats_command("GET a", "a\0");
    return 0;
}

static void test_arguments_do_not_count(void **state)
{
    assert_true(idle_repeats_command("SET lock:1 another NX", "lock:1\0") == lock);
    assert_true(lock != other_lock && lock != get);
    assert_true(idle_repeats_command("MGET a b", "a\0b\0") != idle_repeats_command("MGET a b", "a\0"));
}

static void test_a_try_in_vain_waits_for_a_change_of_others(void **state)
{
    assert_false(idle_repeats_is(&repeats, B, lock));
    idle_repeats_ended(&repeats, A, lock, true, true);
    assert_false(idle_repeats_is(&repeats, A, lock)); /* it had an effect */
    idle_repeats_ended(&repeats, B, lock, true, false);
    assert_true(idle_repeats_is(&repeats, B, lock));
    assert_false(idle_repeats_is(&repeats, B, other_lock));
    idle_repeats_ended(&repeats, A, get, false, false); /* reading frees nobody */
    assert_true(idle_repeats_is(&repeats, B, lock));
    idle_repeats_ended(&repeats, B, get, false, true); /* nor do its own changes */
    assert_true(idle_repeats_is(&repeats, B, lock));
    idle_repeats_ended(&repeats, A, get, false, true);
    assert_false(idle_repeats_is(&repeats, B, lock));
}

static void test_a_fault_is_a_change(void **state)
{
    idle_repeats_ended(&repeats, B, lock, true, false);
    idle_repeats_changed(&repeats);
    assert_false(idle_repeats_is(&repeats, B, lock));
}

static void test_reading_between_two_tries_changes_nothing(void **state)
{
    idle_repeats_ended(&repeats, B, lock, true, false);
    idle_repeats_ended(&repeats, B, get, false, false);
    assert_true(idle_repeats_is(&repeats, B, lock));
}

static void test_the_same_key_may_be_read_again(void **state)
{
    for (int i = 0; i < 3; i++) {
        assert_false(idle_repeats_is(&repeats, A, get));
        idle_repeats_ended(&repeats, A, get, false, false);
    }
    assert_true(idle_repeats_is(&repeats, A, get)); /* but not for ever */
}

static void test_a_try_of_the_past_does_not_hide_what_is_read_now(void **state)
{
    idle_repeats_ended(&repeats, B, lock, true, false);
    idle_repeats_ended(&repeats, A, get, false, true);
    for (int i = 0; i < 3; i++)
        idle_repeats_ended(&repeats, B, get, false, false);
    assert_true(idle_repeats_is(&repeats, B, get));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_arguments_do_not_count, set_up),
        cmocka_unit_test_setup(test_a_try_in_vain_waits_for_a_change_of_others, set_up),
        cmocka_unit_test_setup(test_a_fault_is_a_change, set_up),
        cmocka_unit_test_setup(test_reading_between_two_tries_changes_nothing, set_up),
        cmocka_unit_test_setup(test_a_try_of_the_past_does_not_hide_what_is_read_now, set_up),
        cmocka_unit_test_setup(test_the_same_key_may_be_read_again, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
