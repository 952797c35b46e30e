/* The engine, call by call: locks that are not got, that end too early, and that are checked by a fence. */
#include "tests/unit/service/engine/engine_cases.h"

/* ---- the lock is not got --------------------------------------------------------------------------------- */

static const struct failure lock_failures[] = {
    {"busy", ORDER_LOCK_TIMEOUT, ORDER_LOCK_TIMEOUT, NULL},
    {"lost", ORDER_LOCK_LOST, ORDER_LOCK_LOST, NULL},
    {"not-owner", ORDER_LOCK_LOST, ORDER_LOCK_LOST, NULL},
    {"away", ORDER_BACKEND_UNAVAILABLE, ORDER_BACKEND_UNAVAILABLE, "fake server"},
    {"refused", ORDER_BACKEND_UNAVAILABLE, ORDER_BACKEND_UNAVAILABLE, "fake server"},
    {"unavailable", ORDER_BACKEND_UNAVAILABLE, ORDER_BACKEND_UNAVAILABLE, "fake server"},
    {"failed", ORDER_FAILED, ORDER_FAILED, NULL},
};

static void test_a_lock_that_is_not_got(void **state)
{
    fail_at("acquire", lock_failures, COUNT(lock_failures), FAKE_LOCK_ERROR);
}

/* ---- fences ---------------------------------------------------------------------------------------------- */

static void fence_of_42(void)
{
    fake.fence = 42;
}

static void test_the_fence_is_the_value_of_the_lock_step(void **state)
{
    PLAY("around", false, ORDER_CREATED, .script = LOCKED SELL " commit COMMIT" UNLOCKED,
         .setup = fence_of_42);
    assert_int_equal(fake.lock_step_value, 42);
    PLAY("around", false, ORDER_CREATED, .script = LOCKED SELL " commit COMMIT" UNLOCKED);
    assert_true(fake.lock_step_value == STEP_NO_VALUE);
}

static void test_a_fence_shuts_out_older_holders(void **state)
{
#define FENCE "ready acquire LOCK fence="
    static const struct expected cases[] = {
        {"fenced", false, ORDER_CREATED, .script = FENCED SELL " commit COMMIT" UNLOCKED},
        {"fenced", true, ORDER_CREATED, .script = FENCED "key " SELL " commit COMMIT" UNLOCKED},
        {"fenced", false, ORDER_LOCK_LOST, .script = FENCED "read READ write=lock-lost rollback" UNLOCKED},
        {"fenced", false, ORDER_LOCK_LOST, .script = FENCE "old REFUSE raise" UNLOCKED},
        {"fenced", false, ORDER_LOCK_LOST, .script = FENCE "old REFUSE raise=away" UNLOCKED},
        {"fenced", false, ORDER_NO_SUCH_PRODUCT, .script = FENCE "no-product" UNLOCKED},
        {"fenced", false, ORDER_LOCK_TIMEOUT, .script = FENCE "lock-timeout" UNLOCKED},
        {"fenced", false, ORDER_BACKEND_UNAVAILABLE, .script = FENCE "away" UNLOCKED},
        {"fence-on-write", false, ORDER_CREATED, .script = LOCKED SELL " commit COMMIT" UNLOCKED},
        {"fence-on-write", false, ORDER_LOCK_LOST,
         .script = LOCKED "read READ write=lock-lost rollback" UNLOCKED},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct expected e = cases[i];
        e.setup = fence_of_42;
        (void)play(&e);
    }
}

/* ---- the lock is asked before the write ------------------------------------------------------------------ */

static void checked(void)
{
    fake.checked = true;
}

static void test_what_is_not_surely_held_is_not_written(void **state)
{
    PLAY("around", false, ORDER_CREATED,
         .script = LOCKED "read READ held CHECK write WRITE insert INSERT commit COMMIT" UNLOCKED,
         .setup = checked);
    for (size_t i = 0; i < COUNT(lock_failures); i++) {
        char script[200];
        snprintf(script, sizeof script, LOCKED "read READ held=%s rollback release=lost UNLOCK",
                 lock_failures[i].result);
        PLAY("around", false, ORDER_LOCK_LOST, .script = script, .setup = checked);
    }
}

/* ---- the lock ended before it was released --------------------------------------------------------------- */

#define WITHOUT_LOCK " release=lost UNLOCK"

static void test_a_lock_that_was_lost_after_the_commit(void **state)
{
#define SECOND "begin insert INSERT commit COMMIT-ORDER"
    static const struct expected cases[] = {
        {"around", false, ORDER_CREATED, .script = LOCKED SELL " commit COMMIT" WITHOUT_LOCK, .lost = true},
        {"around", false, ORDER_CREATED,
         .script = LOCKED SELL " commit=unknown settle=committed COMMIT" WITHOUT_LOCK, .lost = true},
        {"twice", false, ORDER_CREATED,
         .script = TWICE TAKE " commit COMMIT-STOCK release" WITHOUT_LOCK " " SECOND, .lost = true},
        {"twice", false, ORDER_CREATED,
         .script = TWICE TAKE " commit COMMIT-STOCK release=lost release UNLOCK " SECOND, .lost = true},
    };
    play_all(cases, COUNT(cases));
}

/* Of an order that does not stand it is not said, whatever happened to its lock. */
static void test_a_lock_that_was_lost_without_a_commit(void **state)
{
    static const struct expected cases[] = {
        {"around", false, ORDER_SOLD_OUT, .script = LOCKED "read=sold-out rollback" WITHOUT_LOCK},
        {"around", false, ORDER_LOCK_TIMEOUT, .script = LOCKED "read=timeout rollback" WITHOUT_LOCK},
        {"around", false, ORDER_UNKNOWN, .script = LOCKED SELL " commit=unknown settle=unknown" WITHOUT_LOCK},
        {"around", false, ORDER_BACKEND_UNAVAILABLE,
         .script = LOCKED SELL " commit=unknown settle=rolled-back" WITHOUT_LOCK},
        {"inside", false, ORDER_CONFLICT, .script = INSIDE SELL WITHOUT_LOCK " commit=serialization"},
        {"inside", false, ORDER_UNKNOWN, .script = INSIDE SELL WITHOUT_LOCK " commit=unknown settle=unknown"},
        {"twice", false, ORDER_FAILED,
         .script = TWICE TAKE " commit COMMIT-STOCK release" WITHOUT_LOCK
                              " begin insert=error rollback acquire give release"},
        {"twice", true, ORDER_KEY_IN_USE,
         .script = LOCKED "key acquire " TAKE " commit COMMIT-STOCK release" WITHOUT_LOCK
                          " begin insert=unique rollback acquire give release"},
    };
    play_all(cases, COUNT(cases));
}

/* ---- deadlines ------------------------------------------------------------------------------------------- */

static void lock_deadline_is_later(void)
{
    fake.placing->lock_deadline_us = fake.placing->deadline_us + 50 * 1000000;
}

/* "Every wait ends" at the order's deadline: a lock's too, however long a lock may be waited for. */
static void test_the_wait_for_the_lock_ends_with_the_order(void **state)
{
    PLAY("around", false, ORDER_CREATED, .script = LOCKED SELL " commit COMMIT" UNLOCKED,
         .setup = lock_deadline_is_later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_a_lock_that_is_not_got),
        ENGINE_TEST(test_the_fence_is_the_value_of_the_lock_step),
        ENGINE_TEST(test_a_fence_shuts_out_older_holders),
        ENGINE_TEST(test_what_is_not_surely_held_is_not_written),
        ENGINE_TEST(test_a_lock_that_was_lost_after_the_commit),
        ENGINE_TEST(test_a_lock_that_was_lost_without_a_commit),
        ENGINE_TEST(test_the_wait_for_the_lock_ends_with_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
