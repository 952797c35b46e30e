/* The lock inside the process that stands before lock-table: handles exclude each other by name, until a deadline. */
#include "tests/unit/unit.h"

#include "base/clock.h"

#include "lock/process_gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT_US = 60000 };

static const struct lock_driver one_kind = {.name = "one"}, other_kind = {.name = "other"};

static enum lock_status take(struct lock *lock, const char *key, int64_t wait_us)
{
    unsigned holds;
    return process_gate_acquire(lock, key, monotonic_us() + wait_us, &holds);
}

static void test_handles_exclude_each_other_by_name(void **state)
{
    struct lock first = {.driver = &one_kind}, second = {.driver = &one_kind},
                of_other_kind = {.driver = &other_kind};
    assert_int_equal(take(&first, "product:1", 0), LOCK_OK);
    int64_t begun_us = monotonic_us();
    assert_int_equal(take(&second, "product:1", SHORT_US), LOCK_TIMED_OUT);
    assert_true(monotonic_us() >= begun_us + SHORT_US);
    assert_int_equal(take(&second, "product:2", 0), LOCK_OK);
    assert_int_equal(take(&of_other_kind, "product:1", 0), LOCK_OK);
    process_gate_release(&second, "product:1"); /* which it has not */
    assert_int_equal(take(&second, "product:1", 0), LOCK_TIMED_OUT);
    process_gate_release(&first, "product:1");
    assert_int_equal(take(&second, "product:1", 0), LOCK_OK);
    process_gate_release(&second, "product:1");
    process_gate_release(&second, "product:2");
    process_gate_release(&of_other_kind, "product:1");
}

static void test_a_holder_takes_it_again(void **state)
{
    struct lock holder = {.driver = &one_kind}, other = {.driver = &one_kind};
    unsigned holds = 0;
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(process_gate_acquire(&holder, "product:1", 0, &holds), LOCK_OK);
        assert_int_equal(holds, i);
    }
    for (unsigned i = 3; i >= 1; i--) {
        assert_int_equal(process_gate_holds(&holder, "product:1"), i);
        assert_int_equal(take(&other, "product:1", 0), LOCK_TIMED_OUT);
        process_gate_release(&holder, "product:1");
    }
    assert_int_equal(process_gate_holds(&holder, "product:1"), 0);
    assert_int_equal(take(&other, "product:1", 0), LOCK_OK);
    process_gate_release(&other, "product:1");
}

/* A waiter that is told to the observer, which then lets the holder go: no wake-up may be lost in between. */
struct releasing {
    struct observer observer;
    struct lock *holder;
    int waits;
};

static void release_on_wait(struct observer *self, enum step step, int64_t value)
{
    struct releasing *releasing = (struct releasing *)self;
    (void)value;
    assert_int_equal(step, STEP_WAIT);
    releasing->waits++;
    process_gate_release(releasing->holder, "product:1");
}

static void test_a_release_just_before_the_wait(void **state)
{
    struct lock holder = {.driver = &one_kind}, waiter = {.driver = &one_kind};
    struct releasing releasing = {.observer.on_step = release_on_wait, .holder = &holder};
    waiter.observer = &releasing.observer;
    assert_int_equal(take(&holder, "product:1", 0), LOCK_OK);
    assert_int_equal(take(&waiter, "product:1", PATIENCE_US), LOCK_OK);
    assert_int_equal(releasing.waits, 1);
    process_gate_release(&waiter, "product:1");
}

/* Holds it long enough for the others to look, if they were woken too. */
static void *take_and_hold(void *arg)
{
    struct lock *waiter = arg;
    bool ok = take(waiter, "product:1", PATIENCE_US) == LOCK_OK;
    sleep_us(SHORT_US);
    process_gate_release(waiter, "product:1");
    return ok ? waiter : NULL;
}

struct counting {
    struct observer observer;
    atomic_int waits;
};

static void count_wait(struct observer *self, enum step step, int64_t value)
{
    (void)step;
    (void)value;
    atomic_fetch_add(&((struct counting *)self)->waits, 1);
}

static void test_a_release_wakes_one_waiter(void **state)
{
    enum { WAITERS = 4 };
    struct counting counting = {.observer.on_step = count_wait};
    struct lock holder = {.driver = &one_kind}, waiters[WAITERS];
    pthread_t threads[WAITERS];
    uint64_t woken = 0;
    assert_int_equal(take(&holder, "product:1", 0), LOCK_OK);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct lock){.driver = &one_kind, .observer = &counting.observer};
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_hold, &waiters[i]), 0);
    }
    while (atomic_load(&counting.waits) < WAITERS)
        sleep_us(1000);
    sleep_us(SHORT_US); /* they have told that they wait, and now do */
    process_gate_release(&holder, "product:1");
    for (int i = 0; i < WAITERS; i++) {
        void *ok;
        assert_int_equal(pthread_join(threads[i], &ok), 0);
        assert_non_null(ok);
        woken += waiters[i].wake_ups;
    }
    assert_in_range(woken, 1, WAITERS); /* by as many releases */
}

static void test_what_is_abandoned_is_free_later(void **state)
{
    struct lock gone = {.driver = &one_kind}, next = {.driver = &one_kind};
    assert_int_equal(take(&gone, "product:1", 0), LOCK_OK);
    int64_t until_us = monotonic_us() + SHORT_US;
    process_gate_abandon(&gone, until_us);
    assert_int_equal(take(&gone, "product:1", 0), LOCK_TIMED_OUT); /* a new handle in the same memory */
    assert_int_equal(take(&next, "product:1", PATIENCE_US), LOCK_OK);
    assert_true(monotonic_us() >= until_us);
    assert_int_equal(take(&gone, "product:1", 0), LOCK_TIMED_OUT);
    process_gate_release(&next, "product:1");
    assert_int_equal(take(&gone, "product:1", 0), LOCK_OK);
    process_gate_release(&gone, "product:1");
}

static void test_a_forked_child_begins_with_none(void **state)
{
    struct lock parents = {.driver = &one_kind}, childs = {.driver = &one_kind};
    int status;
    assert_int_equal(take(&parents, "product:1", 0), LOCK_OK);
    pid_t child = fork();
    if (child == 0)
        _exit(take(&childs, "product:1", 0) == LOCK_OK ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(take(&childs, "product:1", 0), LOCK_TIMED_OUT);
    process_gate_release(&parents, "product:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles_exclude_each_other_by_name),
        cmocka_unit_test(test_a_holder_takes_it_again),
        cmocka_unit_test(test_a_release_just_before_the_wait),
        cmocka_unit_test(test_a_release_wakes_one_waiter),
        cmocka_unit_test(test_what_is_abandoned_is_free_later),
        cmocka_unit_test(test_a_forked_child_begins_with_none),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
