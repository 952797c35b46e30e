/* How the benchmark lets threads work side by side, and pass a lock around. */
#include "base/clock.h"
#include "tests/unit/unit.h"

#include "loadtest/bench/lock.h"

#include <stdatomic.h>
#include <stdio.h>

/* ---- teams ----------------------------------------------------------------------------------------------- */

struct crew {
    atomic_int begun;
    atomic_bool too_early; /* somebody worked before all were ready */
};

struct worker {
    struct crew *crew;
    size_t member;
};

static bool begin_work(void *own, void *shared, size_t member, char *ret_reason)
{
    struct worker *w = own;
    *w = (struct worker){.crew = shared, .member = member};
    atomic_fetch_add(&w->crew->begun, 1);
    *ret_reason = 0;
    return true;
}

static bool work_10_ms(void *own, int64_t end_us, char *ret_reason)
{
    const struct worker *w = own;
    (void)end_us;
    *ret_reason = 0;
    if (atomic_load(&w->crew->begun) < 4)
        atomic_store(&w->crew->too_early, true);
    sleep_us(10000);
    return true;
}

static bool fail_as_the_third(void *own, int64_t end_us, char *ret_reason)
{
    const struct worker *w = own;
    (void)end_us;
    sleep_us(1000);
    snprintf(ret_reason, REASON_SIZE, "number %zu", w->member);
    return w->member != 2;
}

static void end_work(void *own)
{
    (void)own;
}

static void test_a_team_counts_what_ends_in_time(void **state)
{
    static const struct thread_work WORK = {sizeof(struct worker), begin_work, work_10_ms, end_work};
    struct crew crew = {0};
    double per_s = 0;
    char reason[REASON_SIZE] = "";
    /* A busy machine may let no turn end in so short a time: then the next run has one. */
    for (int64_t until_us = monotonic_us() + PATIENCE_US; per_s <= 0 && monotonic_us() < until_us;) {
        atomic_store(&crew.begun, 0);
        assert_true(threads_run(&WORK, &crew, 4, 200, NULL, &per_s, reason));
    }
    assert_false(atomic_load(&crew.too_early));
    assert_true(per_s > 0 && per_s <= 400);
}

static void test_a_team_ends_when_one_fails(void **state)
{
    static const struct thread_work WORK = {sizeof(struct worker), begin_work, fail_as_the_third, end_work};
    struct crew crew = {0};
    double per_s;
    char reason[REASON_SIZE] = "";
    int64_t started = monotonic_us();
    assert_false(threads_run(&WORK, &crew, 4, 60000, NULL, &per_s, reason));
    assert_string_equal(reason, "number 2");
    assert_true(monotonic_us() - started < PATIENCE_US);
}

/* ---- locks, of which the process's own need no server ------------------------------------------------------ */

/* A busy machine may leave the threads no turn in so short a time: then the next run has one. */
static double cycles_per_s(const struct lock_driver *driver, enum lock_rivalry rivalry)
{
    double per_s = 0;
    char reason[REASON_SIZE] = "";
    for (int64_t until_us = monotonic_us() + PATIENCE_US; per_s <= 0 && monotonic_us() < until_us;)
        if (!lock_cycles(driver, rivalry, 3, 50, NULL, &per_s, reason))
            fail_msg("%s", reason);
    return per_s;
}

static void test_cycles(void **state)
{
    assert_true(cycles_per_s(&process_mutex, ONE_KEY) > 0);
    assert_true(cycles_per_s(&process_mutex_per_product, A_KEY_EACH) > 0);
}

static void test_a_lock_without_a_server_says_so(void **state)
{
    double per_s;
    char reason[REASON_SIZE] = "";
    assert_false(lock_cycles(&redis_lock, A_KEY_EACH, 2, 50, NULL, &per_s, reason));
    assert_string_equal(reason, "open: unavailable");
}

/* A mutex that says it was woken twice for each acquisition of the contested key, whoever really had to wait. */
static enum lock_status acquire_after_two_wake_ups(struct lock *lock, const char *key, int64_t deadline_us,
                                                   struct lock_grant *ret_grant)
{
    uint64_t wake_ups = lock->wake_ups;
    enum lock_status status = process_mutex.acquire(lock, key, deadline_us, ret_grant);
    lock->wake_ups = wake_ups + (status == LOCK_OK && strstr(key, ":all") ? 2 : 0);
    return status;
}

static void test_hand_overs_of_a_mutex(void **state)
{
    struct hand_overs seen;
    struct lock_driver mutex = process_mutex;
    mutex.acquire = acquire_after_two_wake_ups;
    char reason[REASON_SIZE] = "";
    bool handed_over = false; /* as above */
    for (int64_t until_us = monotonic_us() + PATIENCE_US; !handed_over && monotonic_us() < until_us;)
        handed_over = lock_hand_overs(&mutex, 4, 300, NULL, &seen, reason);
    assert_true(handed_over);
    assert_true(seen.median_ms >= 0);
    assert_true(seen.together == 0);
    assert_true(seen.wake_ups == 2);
}

static void test_no_hand_overs_where_all_are_let_in(void **state)
{
    struct hand_overs seen = {.together = 1};
    char reason[REASON_SIZE] = "";
    if (lock_hand_overs(&process_mutex_wrong_object, 4, 100, NULL, &seen, reason))
        assert_true(seen.together > 0.1);
    else
        assert_non_null(strstr(reason, "the lock was never handed over"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_team_counts_what_ends_in_time),
        cmocka_unit_test(test_a_team_ends_when_one_fails),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_a_lock_without_a_server_says_so),
        cmocka_unit_test(test_hand_overs_of_a_mutex),
        cmocka_unit_test(test_no_hand_overs_where_all_are_let_in),
    };
    return cmocka_run_group_tests_name("loadtest bench locks", tests, NULL, NULL);
}
