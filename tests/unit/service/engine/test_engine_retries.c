/* The engine, call by call: conflicts, what is tried again, and when no more. */
#include "tests/unit/service/engine/engine_cases.h"

#define REFUSED_COMMIT "ready begin " SELL " commit=serialization "
#define SUCCESS "ready begin " SELL " commit COMMIT"
#define CONFLICT "ready begin read READ write=conflict rollback"
#define LOCKED_CONFLICT LOCKED "read READ write=conflict rollback" UNLOCKED " "

static void test_tries(void **state)
{
    static const struct expected cases[] = {
        {"retry", false, ORDER_CREATED, .script = LOST_RACE SUCCESS},
        {"retry", false, ORDER_CREATED, .script = LOST_RACE LOST_RACE SUCCESS},
        {"retry", false, ORDER_CREATED, .script = REFUSED_COMMIT SUCCESS},
        {"retry", false, ORDER_CREATED,
         .script = "ready begin read=deadlock rollback ready begin " TAKE
                   " insert=serialization rollback " SUCCESS},
        {"retry", false, ORDER_CREATED, .script = "ready=serialization " SUCCESS},
        {"retry", false, ORDER_SOLD_OUT, .script = LOST_RACE "ready begin read=sold-out rollback"},
        {"retry", false, ORDER_NO_SUCH_PRODUCT, .script = LOST_RACE "ready begin read=no-product rollback"},
        {"retry", false, ORDER_LOCK_TIMEOUT, .script = LOST_RACE "ready begin read=timeout rollback"},
        {"retry", false, ORDER_BACKEND_UNAVAILABLE, .script = LOST_RACE "ready=away"},
        {"retry", false, ORDER_FAILED, .script = LOST_RACE "ready begin read READ write=error rollback"},
        {"retry", true, ORDER_REPLAYED,
         .script = "ready begin key read READ write=conflict rollback ready begin key=replay rollback"},
        {"around-retry", false, ORDER_CREATED,
         .script = LOCKED_CONFLICT LOCKED SELL " commit COMMIT" UNLOCKED},
        {"around-retry", false, ORDER_LOCK_TIMEOUT, .script = LOCKED_CONFLICT "ready acquire=busy"},
        {"inside-retry", false, ORDER_CREATED,
         .script = INSIDE "read READ write=conflict" UNLOCKED " rollback " INSIDE SELL UNLOCKED
                          " commit COMMIT"},
    };
    play_all(cases, COUNT(cases));
}

static void test_tries_are_used_up(void **state)
{
    static const struct expected cases[] = {
        {"retry", false, ORDER_CONFLICT, .script = LOST_RACE LOST_RACE CONFLICT},
        {"retry", false, ORDER_CONFLICT,
         .script = REFUSED_COMMIT REFUSED_COMMIT "ready begin " SELL " commit=deadlock"},
        {"around-retry", false, ORDER_CONFLICT,
         .script = LOCKED_CONFLICT LOCKED_CONFLICT LOCKED "read READ write=conflict rollback" UNLOCKED},
    };
    play_all(cases, COUNT(cases));
}

/* Between two tries the engine sleeps for a random while, and never after the last. */
static void test_pauses_between_tries(void **state)
{
    PLAY("retry", false, ORDER_CONFLICT, .script = LOST_RACE LOST_RACE CONFLICT);
    assert_int_equal(fake.pauses, 2);
    assert_true(fake.longest_pause_us > 0 && fake.longest_pause_us <= 20000);

    /* Many tries: no pause grows beyond its bound, and each tries' end is before the deadline. */
    struct fake_order order;
    fake_prepare(&order, find_shape("retry"), false, true);
    order.strategy.max_tries = 30;
    char script[4096] = "";
    for (int i = 0; i < 30; i++)
        fake_append(script, sizeof script, CONFLICT);
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
    PLAY("retry", false, ORDER_CONFLICT, .script = CONFLICT, .setup = deadline_is_now);
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
