/* The engine, call by call: a database that fails, and a COMMIT whose reply is lost. */
#include "tests/unit/service/engine/engine_cases.h"

/* ---- the database fails ---------------------------------------------------------------------------------- */

static void test_a_database_that_fails(void **state)
{
    static const struct failure failures[] = {
        {"serialization", ORDER_CONFLICT, ORDER_CONFLICT, NULL},
        {"deadlock", ORDER_CONFLICT, ORDER_CONFLICT, NULL},
        {"lock-timeout", ORDER_LOCK_TIMEOUT, ORDER_LOCK_TIMEOUT, NULL},
        {"timeout", ORDER_LOCK_TIMEOUT, ORDER_LOCK_TIMEOUT, NULL},
        {"check", ORDER_FAILED, ORDER_FAILED, NULL},
        {"foreign-key", ORDER_FAILED, ORDER_FAILED, NULL},
        {"out-of-range", ORDER_FAILED, ORDER_FAILED, NULL},
        {"away", ORDER_BACKEND_UNAVAILABLE, ORDER_BACKEND_UNAVAILABLE, NULL},
        {"refused", ORDER_BACKEND_UNAVAILABLE, ORDER_BACKEND_UNAVAILABLE, NULL},
        {"error", ORDER_FAILED, ORDER_FAILED, NULL},
    };
    /* Without a key of the client's it is a bug: nothing of its is in progress. */
    static const struct failure unique = {"unique", ORDER_FAILED, ORDER_KEY_IN_USE, NULL};
    static const char *const calls[] = {"ready", "read", "write", "insert", "commit", "key", "one"};
    for (size_t i = 0; i < COUNT(calls); i++)
        fail_at(calls[i], failures, COUNT(failures), FAKE_DB_ERROR);
    fail_at("insert", &unique, 1, FAKE_DB_ERROR);
    fail_at("one", &unique, 1, FAKE_DB_ERROR);
}

/* ---- a COMMIT without a reply ---------------------------------------------------------------------------- */

static void test_a_commit_without_a_reply_is_settled(void **state)
{
#define LOST SELL " commit=unknown settle="
#define SECOND TAKEN "begin insert INSERT commit=unknown settle="
    static const struct expected cases[] = {
        {"plain", false, ORDER_CREATED, .script = "ready begin " LOST "committed COMMIT"},
        {"plain", false, ORDER_BACKEND_UNAVAILABLE, .script = "ready begin " LOST "rolled-back"},
        {"plain", false, ORDER_UNKNOWN, .script = "ready begin " LOST "unknown"},
        {"plain", true, ORDER_CREATED, .script = "ready begin key " LOST "committed COMMIT"},
        {"retry", false, ORDER_UNKNOWN, .script = "ready begin " LOST "unknown"},
        {"retry", false, ORDER_BACKEND_UNAVAILABLE, .script = "ready begin " LOST "rolled-back"},
        {"retry", false, ORDER_CREATED, .script = LOST_RACE "ready begin " LOST "committed COMMIT"},
        /* The lock is held until the fate is known: the next holder would read stock that is about to change. */
        {"around", false, ORDER_CREATED, .script = LOCKED LOST "committed COMMIT" UNLOCKED},
        {"around", false, ORDER_BACKEND_UNAVAILABLE, .script = LOCKED LOST "rolled-back" UNLOCKED},
        {"around", false, ORDER_UNKNOWN, .script = LOCKED LOST "unknown" UNLOCKED},
        {"inside", false, ORDER_CREATED,
         .script = INSIDE SELL UNLOCKED " commit=unknown settle=committed COMMIT"},
        {"inside", false, ORDER_UNKNOWN, .script = INSIDE SELL UNLOCKED " commit=unknown settle=unknown"},
        {"twice", false, ORDER_CREATED,
         .script = TWICE TAKE " commit=unknown settle=committed COMMIT-STOCK" UNLOCKED_TWICE
                              " begin insert INSERT commit COMMIT-ORDER"},
        {"twice", false, ORDER_BACKEND_UNAVAILABLE,
         .script = TWICE TAKE " commit=unknown settle=rolled-back" UNLOCKED_TWICE},
        {"twice", false, ORDER_UNKNOWN,
         .script = TWICE TAKE " commit=unknown settle=unknown" UNLOCKED_TWICE " owe-take"},
        {"twice", false, ORDER_CREATED, .script = SECOND "committed COMMIT-ORDER"},
        {"twice", false, ORDER_BACKEND_UNAVAILABLE, .script = SECOND "rolled-back acquire give release"},
        {"twice", false, ORDER_UNKNOWN, .script = SECOND "unknown owe-order"},
        {"in-one", false, ORDER_UNKNOWN,
         .script = "ready one=unknown"}, /* no id of its transaction came back */
        {"in-one", true, ORDER_CREATED,
         .script = "ready begin key one commit=unknown settle=committed COMMIT"},
        {"in-one", true, ORDER_BACKEND_UNAVAILABLE,
         .script = "ready begin key one commit=unknown settle=rolled-back"},
        {"in-one", true, ORDER_UNKNOWN, .script = "ready begin key one commit=unknown settle=unknown"},
    };
    play_all(cases, COUNT(cases));
}

/* ---- units that were taken and not sold ------------------------------------------------------------------ */

static void test_units_of_an_order_that_fails_are_given_back(void **state)
{
#define FAILED_INSERT TAKEN "begin insert=timeout rollback "
    static const struct expected cases[] = {
        {"twice", false, ORDER_LOCK_TIMEOUT, .script = FAILED_INSERT "acquire give release"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = FAILED_INSERT "acquire give=away give=away give release"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = FAILED_INSERT "acquire give=unknown settle=committed release"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = FAILED_INSERT "acquire give=unknown settle=rolled-back give release"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = FAILED_INSERT "acquire give=unknown settle=unknown release owe-give"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = FAILED_INSERT "acquire give=unknown settle=forgotten release"},
        {"twice", false, ORDER_LOCK_TIMEOUT, .script = FAILED_INSERT "acquire=busy owe-units"},
        {"twice", true, ORDER_KEY_IN_USE,
         .script = LOCKED "key acquire " TAKE " commit COMMIT-STOCK" UNLOCKED_TWICE
                          " begin insert=unique rollback acquire give release"},
        /* Nothing was taken. */
        {"twice", false, ORDER_BACKEND_UNAVAILABLE, .script = TWICE TAKE " commit=away" UNLOCKED_TWICE},
    };
    play_all(cases, COUNT(cases));
}

/* The database stays away: giving back ends, and the units are left to be given back later. */
static void test_giving_back_has_an_end(void **state)
{
    struct fake_order order;
    char script[4096];
    snprintf(script, sizeof script, "%s", TAKEN "begin insert=away rollback acquire");
    for (int i = 0; i < 190; i++)
        fake_append(script, sizeof script, "give=away");
    fake_prepare(&order, find_shape("twice"), false, true);
    fake.script = script;
    fake.pause_longer_us = 50 * 1000;
    fake_place(&order);
    assert_string_equal(fake.broken, "");
    assert_true(fake.owed && !fake.given_back);
    assert_int_equal(order.placing.result.outcome, ORDER_BACKEND_UNAVAILABLE);
}

static void are_crowded(void)
{
    fake.crowded = true;
}

static void test_nothing_is_taken_where_too_much_is_owed(void **state)
{
    PLAY("twice", false, ORDER_OVERLOADED, .script = "ready", .setup = are_crowded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_a_database_that_fails),
        ENGINE_TEST(test_a_commit_without_a_reply_is_settled),
        ENGINE_TEST(test_units_of_an_order_that_fails_are_given_back),
        ENGINE_TEST(test_giving_back_has_an_end),
        ENGINE_TEST(test_nothing_is_taken_where_too_much_is_owed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
