/* The engine, call by call: locks that are not got, that end too early, and that are checked by a fence. */
#include "tests/unit/engine_cases.h"

/* ---- the lock is not got --------------------------------------------------------------------------------- */

static const struct {
    const char *result;
    enum outcome outcome;
    const char *backend;
} lock_failures[] = {
    {"busy", ORDER_LOCK_TIMEOUT, NULL},
    {"lost", ORDER_LOCK_LOST, NULL},
    {"not-owner", ORDER_LOCK_LOST, NULL},
    {"away", ORDER_BACKEND_UNAVAILABLE, "fake server"},
    {"refused", ORDER_BACKEND_UNAVAILABLE, "fake server"},
    {"unavailable", ORDER_BACKEND_UNAVAILABLE, "fake server"},
    {"failed", ORDER_FAILED, NULL},
};

static void test_a_lock_that_is_not_got(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *script;
        bool keyed;
    } points[] = {
        {"around", "ready acquire=%s", false},
        {"around", "ready acquire=%s", true},
        {"inside", "ready begin acquire=%s rollback", false},
        {"inside", "ready begin key acquire=%s rollback", true},
        {"twice", "ready acquire=%s", false},
        {"twice", "ready acquire LOCK begin acquire=%s rollback release UNLOCK", false},
        {"twice", "ready acquire LOCK begin key acquire=%s rollback release UNLOCK", true},
        {"around-retry", "ready acquire=%s", false},
        {"inside-retry", "ready begin acquire=%s rollback", false},
    };
    for (size_t i = 0; i < COUNT(points); i++)
        for (size_t j = 0; j < COUNT(lock_failures); j++) {
            char script[300];
            const char *at = strstr(points[i].script, "%s");
            snprintf(script, sizeof script, "%.*s%s%s", (int)(at - points[i].script), points[i].script,
                     lock_failures[j].result, at + 2);
            struct fake_order order;
            play_with(&(struct expected){points[i].shape, points[i].keyed, lock_failures[j].outcome, script,
                                         0, lock_failures[j].backend, false},
                      NULL, &order);
            assert_string_equal(order.placing.result.error, FAKE_LOCK_ERROR);
        }
}

/* ---- fences ---------------------------------------------------------------------------------------------- */

static void fence_of_42(void)
{
    fake.fence = 42;
}

static void test_the_fence_is_the_value_of_the_lock_step(void **state)
{
    (void)state;
    const struct expected e = {"around", false, ORDER_CREATED,
                               .script = "ready acquire LOCK begin " TAKE
                                         " insert INSERT commit COMMIT release UNLOCK"};
    struct fake_order order;
    play_with(&e, fence_of_42, &order);
    assert_int_equal(fake.lock_step_value, 42);
    play_with(&e, NULL, &order);
    assert_true(fake.lock_step_value == STEP_NO_VALUE);
}

#define FENCED "ready acquire LOCK fence FENCE begin "

static void test_a_fence_shuts_out_older_holders(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"fenced", false, ORDER_CREATED, .script = FENCED TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"fenced", true, ORDER_CREATED,
         .script = FENCED "key " TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"fenced", false, ORDER_LOCK_LOST,
         .script = FENCED "read READ write=lock-lost rollback release UNLOCK"},
        {"fenced", false, ORDER_LOCK_LOST,
         .script = "ready acquire LOCK fence=old REFUSE raise release UNLOCK"},
        {"fenced", false, ORDER_LOCK_LOST,
         .script = "ready acquire LOCK fence=old REFUSE raise=away release UNLOCK"},
        {"fenced", false, ORDER_NO_SUCH_PRODUCT,
         .script = "ready acquire LOCK fence=no-product release UNLOCK"},
        {"fenced", false, ORDER_LOCK_TIMEOUT,
         .script = "ready acquire LOCK fence=lock-timeout release UNLOCK"},
        {"fenced", false, ORDER_BACKEND_UNAVAILABLE, .script = "ready acquire LOCK fence=away release UNLOCK",
         .backend = "postgresql"},
        {"fence-on-write", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin " TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"fence-on-write", false, ORDER_LOCK_LOST,
         .script = "ready acquire LOCK begin read READ write=lock-lost rollback release UNLOCK"},
    };
    struct fake_order order;
    for (size_t i = 0; i < COUNT(cases); i++)
        play_with(&cases[i], fence_of_42, &order);
}

/* ---- the lock is asked before the write ------------------------------------------------------------------ */

static void checked(void)
{
    fake.checked = true;
}

static void test_what_is_not_surely_held_is_not_written(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"around", false, ORDER_CREATED,
                                 .script = "ready acquire LOCK begin read READ held CHECK write WRITE "
                                           "insert INSERT commit COMMIT release UNLOCK"},
              checked, &order);
    for (size_t i = 0; i < COUNT(lock_failures); i++) {
        char script[200];
        snprintf(script, sizeof script,
                 "ready acquire LOCK begin read READ held=%s rollback release=lost UNLOCK",
                 lock_failures[i].result);
        play_with(&(struct expected){"around", false, ORDER_LOCK_LOST, .script = script}, checked, &order);
    }
}

/* ---- the lock ended before it was released --------------------------------------------------------------- */

static void test_a_lock_that_was_lost_after_the_commit(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"around", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin " TAKE " insert INSERT commit COMMIT release=lost UNLOCK",
         .lost = true},
        {"around", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=committed COMMIT release=lost UNLOCK",
         .lost = true},
        {"twice", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit COMMIT-STOCK release release=lost UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER",
         .lost = true},
        {"twice", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit COMMIT-STOCK release=lost release UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER",
         .lost = true},
    };
    play_all(cases, COUNT(cases));
}

/* Of an order that does not stand it is not said, whatever happened to its lock. */
static void test_a_lock_that_was_lost_without_a_commit(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"around", false, ORDER_SOLD_OUT,
         .script = "ready acquire LOCK begin read=sold-out rollback release=lost UNLOCK"},
        {"around", false, ORDER_LOCK_TIMEOUT,
         .script = "ready acquire LOCK begin read=timeout rollback release=lost UNLOCK"},
        {"around", false, ORDER_UNKNOWN,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=unknown release=lost UNLOCK"},
        {"around", false, ORDER_BACKEND_UNAVAILABLE,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=rolled-back release=lost UNLOCK",
         .backend = "postgresql"},
        {"inside", false, ORDER_CONFLICT,
         .script = "ready begin acquire LOCK " TAKE
                   " insert INSERT release=lost UNLOCK commit=serialization"},
        {"inside", false, ORDER_UNKNOWN,
         .script = "ready begin acquire LOCK " TAKE
                   " insert INSERT release=lost UNLOCK commit=unknown settle=unknown"},
        {"twice", false, ORDER_FAILED,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit COMMIT-STOCK release release=lost UNLOCK "
                   "begin insert=error rollback acquire give release"},
        {"twice", true, ORDER_KEY_IN_USE,
         .script = "ready acquire LOCK begin key acquire " TAKE
                   " commit COMMIT-STOCK release release=lost UNLOCK "
                   "begin insert=unique rollback acquire give release"},
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
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"around", false, ORDER_CREATED,
                                 .script = "ready acquire LOCK begin " TAKE
                                           " insert INSERT commit COMMIT release UNLOCK"},
              lock_deadline_is_later, &order);
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
