/* The engine, call by call: conflicts, what is tried again, and when no more. */
#include "tests/unit/engine_cases.h"

#define REFUSED_COMMIT "ready begin " TAKE " insert INSERT commit=serialization "

static void test_tries(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"retry", false, ORDER_CREATED,
         .script = LOST_RACE "ready begin " TAKE " insert INSERT commit COMMIT", .tries = 2},
        {"retry", false, ORDER_CREATED,
         .script = LOST_RACE LOST_RACE "ready begin " TAKE " insert INSERT commit COMMIT", .tries = 3},
        {"retry", false, ORDER_CREATED,
         .script = REFUSED_COMMIT "ready begin " TAKE " insert INSERT commit COMMIT", .tries = 2},
        {"retry", false, ORDER_CREATED,
         .script = "ready begin read=deadlock rollback ready begin " TAKE " insert=serialization rollback "
                   "ready begin " TAKE " insert INSERT commit COMMIT",
         .tries = 3},
        {"retry", false, ORDER_CREATED,
         .script = "ready=serialization ready begin " TAKE " insert INSERT commit COMMIT", .tries = 2},
        {"retry", false, ORDER_SOLD_OUT, .script = LOST_RACE "ready begin read=sold-out rollback",
         .tries = 2},
        {"retry", false, ORDER_NO_SUCH_PRODUCT, .script = LOST_RACE "ready begin read=no-product rollback",
         .tries = 2},
        {"retry", false, ORDER_LOCK_TIMEOUT, .script = LOST_RACE "ready begin read=timeout rollback",
         .tries = 2},
        {"retry", false, ORDER_BACKEND_UNAVAILABLE, .script = LOST_RACE "ready=away", .tries = 2,
         .backend = "postgresql"},
        {"retry", false, ORDER_FAILED, .script = LOST_RACE "ready begin read READ write=error rollback",
         .tries = 2},
        {"retry", true, ORDER_REPLAYED,
         .script = "ready begin key read READ write=conflict rollback ready begin key=replay rollback",
         .tries = 2},
        {"around-retry", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK "
                   "ready acquire LOCK begin " TAKE " insert INSERT commit COMMIT release UNLOCK",
         .tries = 2},
        {"around-retry", false, ORDER_LOCK_TIMEOUT,
         .script =
             "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK ready acquire=busy",
         .tries = 2},
        {"inside-retry", false, ORDER_CREATED,
         .script = "ready begin acquire LOCK read READ write=conflict release UNLOCK rollback "
                   "ready begin acquire LOCK " TAKE " insert INSERT release UNLOCK commit COMMIT",
         .tries = 2},
    };
    play_all(cases, COUNT(cases));
}

static void test_tries_are_used_up(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"retry", false, ORDER_CONFLICT,
         .script = LOST_RACE LOST_RACE "ready begin read READ write=conflict rollback", .tries = 3},
        {"retry", false, ORDER_CONFLICT,
         .script = REFUSED_COMMIT REFUSED_COMMIT "ready begin " TAKE " insert INSERT commit=deadlock",
         .tries = 3},
        {"around-retry", false, ORDER_CONFLICT,
         .script = "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK "
                   "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK "
                   "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK",
         .tries = 3},
    };
    play_all(cases, COUNT(cases));
}

/* Between two tries the engine sleeps for a random while, and never after the last. */
static void test_pauses_between_tries(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(
        &(struct expected){"retry", false, ORDER_CONFLICT,
                           .script = LOST_RACE LOST_RACE "ready begin read READ write=conflict rollback",
                           .tries = 3},
        NULL, &order);
    assert_int_equal(fake.pauses, 2);
    assert_true(fake.longest_pause_us > 0 && fake.longest_pause_us <= 20000);

    /* Many tries: no pause grows beyond its bound, and each tries' end is before the deadline. */
    fake_prepare(&order, find_shape("retry"), false, true);
    order.strategy.max_tries = 30;
    static char script[4096];
    script[0] = '\0';
    for (int i = 0; i < 30; i++)
        fake_append(script, sizeof script, "ready begin read READ write=conflict rollback");
    fake.script = script;
    fake.random_value = 19999;
    fake_place(&order);
    assert_string_equal(fake.log, script);
    assert_string_equal(fake.broken, "");
    assert_int_equal(order.placing.result.tries, 30);
    assert_int_equal(order.placing.result.outcome, ORDER_CONFLICT);
    assert_int_equal(fake.pauses, 29);
    assert_true(fake.longest_pause_us <= 20000);
}

static void deadline_is_now(void)
{
    fake.placing->deadline_us = fake.now_us + 100;
    fake.placing->lock_deadline_us = fake.now_us + 100;
}

static void test_no_try_after_the_deadline(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"retry", false, ORDER_CONFLICT,
                                 .script = "ready begin read READ write=conflict rollback", .tries = 1},
              deadline_is_now, &order);
    assert_int_equal(fake.pauses, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_tries),
        ENGINE_TEST(test_tries_are_used_up),
        ENGINE_TEST(test_pauses_between_tries),
        ENGINE_TEST(test_no_try_after_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
