/* For whom an order waits: the current holders of a lock, or the order before it in the lock's queue. */
#include "tests/unit/unit.h"

#include "loadtest/explore/explain/lock_waits.h"
#include "lock/registry.h"

enum { A, B, C, D };

static struct execution execution;

/* Begins a schedule of a strategy with LOCK. */
static void begin(const struct lock_driver *lock)
{
    static struct strategy strategy;
    static struct lock admin;
    strategy = (struct strategy){.name = lock->name, .lock = lock};
    execution = (struct execution){.settings = {.strategy = &strategy, .actors = 4}};
    execution.lock_admin = lock->server && lock->properties.carrier != CARRIER_CONNECTION ? &admin : NULL;
}

static void happens(uint8_t actor, uint8_t what, int64_t value)
{
    execution.trace.events[execution.trace.event_count++] = (struct event){
        .actor = actor, .what = what, .value = value};
}

static void locks(uint8_t actor)
{
    happens(actor, STEP_LOCK, STEP_NO_VALUE);
}

static void waits(uint8_t actor)
{
    happens(actor, EVENT_WAITS, 0);
}

/* The event that has just happened, and the state after it, agree that ACTOR waits for OTHERS. */
static void assert_waits_for(uint8_t actor, unsigned others)
{
    unsigned holders;
    assert_int_equal(lock_waits_for(&execution, actor, execution.trace.event_count, &holders), others);
    const struct event *last = &execution.trace.events[execution.trace.event_count - 1];
    if (last->actor == actor && last->what == EVENT_WAITS)
        assert_int_equal(event_waits_for(&execution, execution.trace.event_count - 1), others);
}

static void assert_holders(unsigned expected)
{
    unsigned holders;
    (void)lock_waits_for(&execution, D, execution.trace.event_count, &holders);
    assert_int_equal(holders, expected);
}

static void test_a_holder_whose_lease_has_ended_is_not_named(void **state)
{
    begin(&redis_lock);
    locks(A);
    waits(C);
    assert_waits_for(C, 1 << A);
    happens(A, EVENT_EXPIRED, 0);
    locks(B);
    waits(C);
    assert_waits_for(C, 1 << B);
    assert_holders(1 << B);
    happens(A, STEP_UNLOCK, 0);
    assert_waits_for(C, 1 << B);
    happens(B, STEP_UNLOCK, 1);
    assert_waits_for(C, 0);
}

static void test_a_lock_that_another_order_has_released(void **state)
{
    begin(&redis_lock);
    locks(A);
    happens(A, EVENT_EXPIRED, 0);
    locks(B);
    happens(A, STEP_DEL, 1);
    happens(B, EVENT_LOCK_STOLEN, A);
    locks(C);
    waits(D);
    assert_waits_for(D, 1 << C);
}

static void test_two_commands_and_a_key_that_ends_between_them(void **state)
{
    begin(&redis_lock);
    happens(A, STEP_SETNX, 1);
    waits(B);
    assert_waits_for(B, 1 << A);
    happens(A, EVENT_EXPIRED, 0);
    locks(A); /* it does not know */
    waits(B);
    assert_waits_for(B, 0);
    happens(A, STEP_UNLOCK, 0);
    happens(A, EVENT_ENDED, ORDER_CREATED);
    happens(A, STEP_SETNX, 1);
    locks(A);
    assert_holders(1 << A);
}

static void test_a_crash(void **state)
{
    begin(&redis_lock); /* the lock stays on its server */
    locks(A);
    happens(A, EVENT_CRASHED, STEP_NO_VALUE);
    waits(B);
    assert_waits_for(B, 1 << A);
    begin(&lock_row); /* it ends with the connection */
    locks(A);
    happens(A, EVENT_CRASHED, STEP_NO_VALUE);
    locks(B);
    waits(C);
    assert_waits_for(C, 1 << B);
    begin(&process_mutex);
    locks(A);
    happens(A, EVENT_CRASHED, STEP_NO_VALUE);
    assert_holders(0);
}

static void test_servers_that_forget(void **state)
{
    begin(&redlock);
    locks(A);
    happens(A, EVENT_RESTARTED, STEP_NO_VALUE);
    waits(B);
    assert_waits_for(B, 1 << A);
    happens(A, EVENT_RESTARTED, RESTART_ENDED_LOCK);
    locks(B);
    waits(C);
    assert_waits_for(C, 1 << B);
}

static void test_in_a_queue_each_waits_for_the_one_before(void **state)
{
    const struct lock_driver *const queues[] = {&zookeeper_queue, &redis_fair, &etcd_mutex, &curator};
    for (size_t i = 0; i < COUNT(queues); i++) {
        begin(queues[i]);
        locks(A);
        happens(B, STEP_WAIT, STEP_NO_VALUE);
        waits(B);
        waits(C);
        waits(D);
        assert_waits_for(B, 1 << A);
        assert_waits_for(C, 1 << B);
        assert_waits_for(D, 1 << C);
        assert_holders(1 << A);
        happens(A, STEP_UNLOCK, 1);
        assert_waits_for(B, 0); /* it is first, and has not looked yet */
        assert_waits_for(C, 1 << B);
        locks(B);
        assert_waits_for(C, 1 << B);
        assert_holders(1 << B);
    }
}

static void test_in_a_herd_all_wait_for_the_first(void **state)
{
    begin(&zookeeper_herd);
    locks(A);
    waits(B);
    waits(C);
    assert_waits_for(B, 1 << A);
    assert_waits_for(C, 1 << A);
    happens(A, STEP_UNLOCK, 1);
    assert_waits_for(C, 1 << B);
}

static void test_a_place_that_ends(void **state)
{
    begin(&zookeeper_queue);
    locks(A);
    waits(B);
    waits(C);
    happens(B, EVENT_EXPIRED, 1);
    waits(C);
    assert_waits_for(C, 1 << A);
    waits(B); /* it takes another place, the last */
    assert_waits_for(B, 1 << C);
    happens(C, EVENT_TIMED_OUT, STEP_NO_VALUE);
    happens(C, EVENT_ENDED, ORDER_LOCK_TIMEOUT);
    assert_waits_for(B, 1 << A);
    happens(A, EVENT_EXPIRED, 0);
    locks(B);
    waits(D);
    assert_waits_for(D, 1 << B);
}

/* It believes that it holds the lock, but has no place in the queue. */
static void test_a_waiter_that_believes_too_early(void **state)
{
    begin(&zookeeper_naive);
    locks(A);
    waits(B);
    happens(B, EVENT_EXPIRED, 1);
    locks(B);
    waits(C);
    assert_waits_for(C, 1 << A);
    assert_holders(1 << A);
    happens(D, EVENT_WAITS, WAITS_FOR_EVER);
    assert_int_equal(event_waits_for(&execution, execution.trace.event_count - 1), 0);
}

static void test_a_wait_in_the_database(void **state)
{
    begin(&redis_lock);
    locks(A);
    happens(B, EVENT_WAITS, 1 << C);
    assert_int_equal(event_waits_for(&execution, 1), 1 << C);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_holder_whose_lease_has_ended_is_not_named),
        cmocka_unit_test(test_a_lock_that_another_order_has_released),
        cmocka_unit_test(test_two_commands_and_a_key_that_ends_between_them),
        cmocka_unit_test(test_a_crash),
        cmocka_unit_test(test_servers_that_forget),
        cmocka_unit_test(test_in_a_queue_each_waits_for_the_one_before),
        cmocka_unit_test(test_in_a_herd_all_wait_for_the_first),
        cmocka_unit_test(test_a_place_that_ends),
        cmocka_unit_test(test_a_waiter_that_believes_too_early),
        cmocka_unit_test(test_a_wait_in_the_database),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
