/* The engine, call by call: a database that fails, and a COMMIT whose reply is lost. */
#include "tests/unit/engine_cases.h"

/* ---- the database fails ---------------------------------------------------------------------------------- */

static const struct {
    const char *result;
    enum outcome outcome, keyed_outcome;
} db_failures[] = {
    {"serialization", ORDER_CONFLICT, ORDER_CONFLICT},
    {"deadlock", ORDER_CONFLICT, ORDER_CONFLICT},
    {"lock-timeout", ORDER_LOCK_TIMEOUT, ORDER_LOCK_TIMEOUT},
    {"timeout", ORDER_LOCK_TIMEOUT, ORDER_LOCK_TIMEOUT},
    {"check", ORDER_FAILED, ORDER_FAILED},
    {"foreign-key", ORDER_FAILED, ORDER_FAILED},
    {"out-of-range", ORDER_FAILED, ORDER_FAILED},
    {"away", ORDER_BACKEND_UNAVAILABLE, ORDER_BACKEND_UNAVAILABLE},
    {"refused", ORDER_BACKEND_UNAVAILABLE, ORDER_BACKEND_UNAVAILABLE},
    {"error", ORDER_FAILED, ORDER_FAILED},
    {"unique", ORDER_FAILED,
     ORDER_KEY_IN_USE}, /* without a key of the client's it is a bug: nothing of its is in progress */
};

/* Lines with one %s, where any failure of the database may stand. */
static const struct {
    const char *shape;
    bool keyed;
    const char *script;
} db_points[] = {
    {"plain", false, "ready=%s"},
    {"plain", false, "ready begin read=%s rollback"},
    {"plain", false, "ready begin read READ write=%s rollback"},
    {"plain", false, "ready begin " TAKE " insert=%s rollback"},
    {"plain", false, "ready begin " TAKE " insert INSERT commit=%s"},
    {"plain", true, "ready begin key=%s rollback"},
    {"plain", true, "ready begin key read=%s rollback"},
    {"plain", true, "ready begin key " TAKE " insert=%s rollback"},

    {"around", false, "ready=%s"},
    {"around", false, "ready acquire LOCK begin read=%s rollback release UNLOCK"},
    {"around", false, "ready acquire LOCK begin read READ write=%s rollback release UNLOCK"},
    {"around", false, "ready acquire LOCK begin " TAKE " insert=%s rollback release UNLOCK"},
    {"around", false, "ready acquire LOCK begin " TAKE " insert INSERT commit=%s release UNLOCK"},
    {"around", true, "ready acquire LOCK begin key=%s rollback release UNLOCK"},
    {"around", true, "ready acquire LOCK begin key " TAKE " insert=%s rollback release UNLOCK"},

    {"inside", false, "ready=%s"},
    {"inside", false, "ready begin acquire LOCK read=%s release UNLOCK rollback"},
    {"inside", false, "ready begin acquire LOCK read READ write=%s release UNLOCK rollback"},
    {"inside", false, "ready begin acquire LOCK " TAKE " insert=%s release UNLOCK rollback"},
    {"inside", false, "ready begin acquire LOCK " TAKE " insert INSERT release UNLOCK commit=%s"},
    {"inside", true, "ready begin key=%s rollback"},
    {"inside", true, "ready begin key acquire LOCK " TAKE " insert=%s release UNLOCK rollback"},

    {"twice", false, "ready=%s"},
    {"twice", false, "ready acquire LOCK begin acquire read=%s rollback release release UNLOCK"},
    {"twice", false, "ready acquire LOCK begin acquire read READ write=%s rollback release release UNLOCK"},
    {"twice", false, "ready acquire LOCK begin acquire " TAKE " commit=%s release release UNLOCK"},
    {"twice", false,
     "ready acquire LOCK begin acquire " TAKE
     " commit COMMIT-STOCK release release UNLOCK begin insert=%s rollback "
     "acquire give release"},
    {"twice", false,
     "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
     "begin insert INSERT commit=%s acquire give release"},
    {"twice", true, "ready acquire LOCK begin key=%s rollback release UNLOCK"},
    {"twice", true,
     "ready acquire LOCK begin key acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
     "begin insert=%s rollback acquire give release"},

    {"in-one", false, "ready=%s"},
    {"in-one", false, "ready one=%s"},
    {"in-one", true, "ready begin key=%s rollback"},
    {"in-one", true, "ready begin key one=%s rollback"},
    {"in-one", true, "ready begin key one commit=%s"},
};

static void test_a_database_that_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(db_points); i++)
        for (size_t j = 0; j < COUNT(db_failures); j++) {
            bool inserts = strstr(db_points[i].script, "insert=%s") || strstr(db_points[i].script, "one=%s");
            if (strcmp(db_failures[j].result, "unique") == 0 && !inserts)
                continue;
            char script[400];
            const char *at = strstr(db_points[i].script, "%s");
            snprintf(script, sizeof script, "%.*s%s%s", (int)(at - db_points[i].script), db_points[i].script,
                     db_failures[j].result, at + 2);
            enum outcome outcome = db_points[i].keyed ? db_failures[j].keyed_outcome : db_failures[j].outcome;
            struct fake_order order;
            play_with(&(struct expected){db_points[i].shape, db_points[i].keyed, outcome, script, 0,
                                         outcome == ORDER_BACKEND_UNAVAILABLE ? "postgresql" : NULL, false},
                      NULL, &order);
            assert_string_equal(order.placing.result.error, FAKE_DB_ERROR);
        }
}

/* ---- a COMMIT without a reply ---------------------------------------------------------------------------- */

static void test_a_commit_without_a_reply_is_settled(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"plain", false, ORDER_CREATED,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=committed COMMIT"},
        {"plain", false, ORDER_BACKEND_UNAVAILABLE,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=rolled-back",
         .backend = "postgresql"},
        {"plain", false, ORDER_UNKNOWN,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=unknown"},
        {"plain", true, ORDER_CREATED,
         .script = "ready begin key " TAKE " insert INSERT commit=unknown settle=committed COMMIT"},
        {"retry", false, ORDER_UNKNOWN,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=unknown"},
        {"retry", false, ORDER_BACKEND_UNAVAILABLE,
         .script = "ready begin " TAKE " insert INSERT commit=unknown settle=rolled-back",
         .backend = "postgresql"},
        {"retry", false, ORDER_CREATED,
         .script = LOST_RACE "ready begin " TAKE " insert INSERT commit=unknown settle=committed COMMIT",
         .tries = 2},
        /* The lock is held until the fate is known: the next holder would read stock that is about to change. */
        {"around", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=committed COMMIT release UNLOCK"},
        {"around", false, ORDER_BACKEND_UNAVAILABLE,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=rolled-back release UNLOCK",
         .backend = "postgresql"},
        {"around", false, ORDER_UNKNOWN,
         .script = "ready acquire LOCK begin " TAKE
                   " insert INSERT commit=unknown settle=unknown release UNLOCK"},
        {"inside", false, ORDER_CREATED,
         .script = "ready begin acquire LOCK " TAKE
                   " insert INSERT release UNLOCK commit=unknown settle=committed COMMIT"},
        {"inside", false, ORDER_UNKNOWN,
         .script = "ready begin acquire LOCK " TAKE
                   " insert INSERT release UNLOCK commit=unknown settle=unknown"},
        {"twice", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit=unknown settle=committed COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER"},
        {"twice", false, ORDER_BACKEND_UNAVAILABLE,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit=unknown settle=rolled-back release release UNLOCK",
         .backend = "postgresql"},
        {"twice", false, ORDER_UNKNOWN,
         .script = "ready acquire LOCK begin acquire " TAKE
                   " commit=unknown settle=unknown release release UNLOCK owe-take"},
        {"twice", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit=unknown settle=committed COMMIT-ORDER"},
        {"twice", false, ORDER_BACKEND_UNAVAILABLE,
         .script = "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit=unknown settle=rolled-back acquire give release",
         .backend = "postgresql"},
        {"twice", false, ORDER_UNKNOWN,
         .script = "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit=unknown settle=unknown owe-order"},
        {"in-one", false, ORDER_UNKNOWN,
         .script = "ready one=unknown"}, /* its transaction has no name that came back */
        {"in-one", true, ORDER_CREATED,
         .script = "ready begin key one commit=unknown settle=committed COMMIT"},
        {"in-one", true, ORDER_BACKEND_UNAVAILABLE,
         .script = "ready begin key one commit=unknown settle=rolled-back", .backend = "postgresql"},
        {"in-one", true, ORDER_UNKNOWN, .script = "ready begin key one commit=unknown settle=unknown"},
    };
    play_all(cases, COUNT(cases));
}

/* ---- units that were taken and not sold ------------------------------------------------------------------ */

#define TAKEN "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "

static void test_units_of_an_order_that_fails_are_given_back(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = TAKEN "begin insert=timeout rollback acquire give release"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = TAKEN "begin insert=timeout rollback acquire give=away give=away give release"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = TAKEN "begin insert=timeout rollback acquire give=unknown settle=committed release"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = TAKEN
         "begin insert=timeout rollback acquire give=unknown settle=rolled-back give release"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = TAKEN
         "begin insert=timeout rollback acquire give=unknown settle=unknown release owe-give"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = TAKEN "begin insert=timeout rollback acquire give=unknown settle=forgotten release"},
        {"twice", false, ORDER_LOCK_TIMEOUT,
         .script = TAKEN "begin insert=timeout rollback acquire=busy owe-units"},
        {"twice", true, ORDER_KEY_IN_USE,
         .script = "ready acquire LOCK begin key acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert=unique rollback acquire give release"},
        /* Nothing was taken. */
        {"twice", false, ORDER_BACKEND_UNAVAILABLE,
         .script = "ready acquire LOCK begin acquire " TAKE " commit=away release release UNLOCK",
         .backend = "postgresql"},
    };
    play_all(cases, COUNT(cases));
}

/* The database stays away: giving back ends, and the units are left to be given back later. */
static void test_giving_back_has_an_end(void **state)
{
    (void)state;
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
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"twice", false, ORDER_OVERLOADED, .script = "ready"}, are_crowded, &order);
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
