/* The engine, call by call: what an order comes to where servers and locks do what they are asked. */
#include "tests/unit/engine_cases.h"

/* ---- all goes well --------------------------------------------------------------------------------------- */

static void test_orders_that_succeed(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"plain", false, ORDER_CREATED, .script = "ready begin " TAKE " insert INSERT commit COMMIT"},
        {"plain", true, ORDER_CREATED, .script = "ready begin key " TAKE " insert INSERT commit COMMIT"},
        {"retry", false, ORDER_CREATED, .script = "ready begin " TAKE " insert INSERT commit COMMIT"},
        {"retry", true, ORDER_CREATED, .script = "ready begin key " TAKE " insert INSERT commit COMMIT"},
        {"around", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin " TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"around", true, ORDER_CREATED,
         .script = "ready acquire LOCK begin key " TAKE " insert INSERT commit COMMIT release UNLOCK"},
        {"inside", false, ORDER_CREATED,
         .script = "ready begin acquire LOCK " TAKE " insert INSERT release UNLOCK commit COMMIT"},
        {"inside", true, ORDER_CREATED,
         .script = "ready begin key acquire LOCK " TAKE " insert INSERT release UNLOCK commit COMMIT"},
        {"twice", false, ORDER_CREATED,
         .script = "ready acquire LOCK begin acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER"},
        {"twice", true, ORDER_CREATED,
         .script = "ready acquire LOCK begin key acquire " TAKE " commit COMMIT-STOCK release release UNLOCK "
                   "begin insert INSERT commit COMMIT-ORDER"},
        {"in-one", false, ORDER_CREATED, .script = "ready one COMMIT"},
        {"in-one", true, ORDER_CREATED, .script = "ready begin key one commit COMMIT"},
    };
    play_all(cases, COUNT(cases));
}

static void guarded(void)
{
    fake.guarded = true;
}

static void test_a_guarded_statement(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"plain", false, ORDER_CREATED,
                                 .script = "ready begin take TAKE insert INSERT commit COMMIT"},
              guarded, &order);
    play_with(
        &(struct expected){"plain", false, ORDER_SOLD_OUT, .script = "ready begin take=sold-out rollback"},
        guarded, &order);
}

static void test_what_a_created_order_tells(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"plain", false, ORDER_CREATED,
                                 .script = "ready begin " TAKE " insert INSERT commit COMMIT"},
              NULL, &order);
    assert_int_equal(order.placing.result.order.id, 4712);
    assert_int_equal(order.placing.result.order.product_id, FAKE_PRODUCT);
    play_with(&(struct expected){"in-one", false, ORDER_CREATED, .script = "ready one COMMIT"}, NULL, &order);
    assert_int_equal(order.placing.result.order.id, 4712);
}

/* ---- the stock cannot be taken --------------------------------------------------------------------------- */

static void test_stock_that_cannot_be_taken(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"plain", false, ORDER_NO_SUCH_PRODUCT, .script = "ready begin read=no-product rollback"},
        {"plain", false, ORDER_WRONG_STOCK_KIND, .script = "ready begin read=wrong-kind rollback"},
        {"plain", false, ORDER_SOLD_OUT, .script = "ready begin read=sold-out rollback"},
        {"plain", false, ORDER_SOLD_OUT, .script = "ready begin read READ write=sold-out rollback"},
        {"plain", false, ORDER_LOCK_TIMEOUT, .script = "ready begin read=busy rollback"},
        {"plain", false, ORDER_CONFLICT, .script = "ready begin read READ write=conflict rollback"},
        {"plain", true, ORDER_SOLD_OUT, .script = "ready begin key read=sold-out rollback"},
        {"around", false, ORDER_NO_SUCH_PRODUCT,
         .script = "ready acquire LOCK begin read=no-product rollback release UNLOCK"},
        {"around", false, ORDER_WRONG_STOCK_KIND,
         .script = "ready acquire LOCK begin read=wrong-kind rollback release UNLOCK"},
        {"around", false, ORDER_SOLD_OUT,
         .script = "ready acquire LOCK begin read=sold-out rollback release UNLOCK"},
        {"around", false, ORDER_LOCK_TIMEOUT,
         .script = "ready acquire LOCK begin read=busy rollback release UNLOCK"},
        {"around", false, ORDER_CONFLICT,
         .script = "ready acquire LOCK begin read READ write=conflict rollback release UNLOCK"},
        {"around", true, ORDER_SOLD_OUT,
         .script = "ready acquire LOCK begin key read=sold-out rollback release UNLOCK"},
        {"inside", false, ORDER_NO_SUCH_PRODUCT,
         .script = "ready begin acquire LOCK read=no-product release UNLOCK rollback"},
        {"inside", false, ORDER_WRONG_STOCK_KIND,
         .script = "ready begin acquire LOCK read=wrong-kind release UNLOCK rollback"},
        {"inside", false, ORDER_SOLD_OUT,
         .script = "ready begin acquire LOCK read=sold-out release UNLOCK rollback"},
        {"inside", false, ORDER_CONFLICT,
         .script = "ready begin acquire LOCK read READ write=conflict release UNLOCK rollback"},
        {"inside", true, ORDER_SOLD_OUT,
         .script = "ready begin key acquire LOCK read=sold-out release UNLOCK rollback"},
        {"twice", false, ORDER_NO_SUCH_PRODUCT,
         .script = "ready acquire LOCK begin acquire read=no-product rollback release release UNLOCK"},
        {"twice", false, ORDER_WRONG_STOCK_KIND,
         .script = "ready acquire LOCK begin acquire read=wrong-kind rollback release release UNLOCK"},
        {"twice", false, ORDER_SOLD_OUT,
         .script = "ready acquire LOCK begin acquire read=sold-out rollback release release UNLOCK"},
        {"twice", false, ORDER_CONFLICT,
         .script =
             "ready acquire LOCK begin acquire read READ write=conflict rollback release release UNLOCK"},
        {"twice", true, ORDER_SOLD_OUT,
         .script = "ready acquire LOCK begin key acquire read=sold-out rollback release release UNLOCK"},
        {"in-one", false, ORDER_NO_SUCH_PRODUCT, .script = "ready one=no-product"},
        {"in-one", false, ORDER_WRONG_STOCK_KIND, .script = "ready one=wrong-kind"},
        {"in-one", false, ORDER_SOLD_OUT, .script = "ready one=sold-out"},
        {"in-one", true, ORDER_NO_SUCH_PRODUCT, .script = "ready begin key one=no-product rollback"},
        {"in-one", true, ORDER_WRONG_STOCK_KIND, .script = "ready begin key one=wrong-kind rollback"},
        {"in-one", true, ORDER_SOLD_OUT, .script = "ready begin key one=sold-out rollback"},
    };
    play_all(cases, COUNT(cases));
}

static void nothing_was_read(void)
{
    fake.available = STOCK_UNSEEN;
    fake.look_finds = 0;
}

static void one_is_left(void)
{
    fake.available = 1;
}

static void test_what_a_refused_order_tells(void **state)
{
    (void)state;
    struct fake_order order;
    const struct order_result *result = &order.placing.result;
    play_with(
        &(struct expected){"plain", false, ORDER_SOLD_OUT, .script = "ready begin read=sold-out rollback"},
        one_is_left, &order);
    assert_int_equal(result->available, 1);
    play_with(&(struct expected){"in-one", false, ORDER_SOLD_OUT, .script = "ready one=sold-out"},
              one_is_left, &order);
    assert_int_equal(result->available, 1);
    play_with(&(struct expected){"plain", false, ORDER_WRONG_STOCK_KIND,
                                 .script = "ready begin read=wrong-kind rollback"},
              NULL, &order);
    assert_string_equal(result->kind, "buckets");
    play_with(&(struct expected){"plain", false, ORDER_NO_SUCH_PRODUCT,
                                 .script = "ready begin read=no-product rollback"},
              NULL, &order);
    assert_true(result->available == STOCK_UNSEEN);
    assert_string_equal(result->kind, "");
}

/* Where the failed statement could not say what is left, one look outside the transaction and the lock does. */
static void test_a_second_look_at_what_is_left(void **state)
{
    (void)state;
    struct fake_order order;
    const struct order_result *result = &order.placing.result;
    play_with(&(struct expected){"plain", false, ORDER_SOLD_OUT,
                                 .script = "ready begin read READ write=sold-out rollback look"},
              nothing_was_read, &order);
    assert_int_equal(result->available, 0);
    play_with(
        &(struct expected){
            "around", false, ORDER_SOLD_OUT,
            .script = "ready acquire LOCK begin read READ write=sold-out rollback release UNLOCK look"},
        nothing_was_read, &order);
    assert_int_equal(result->available, 0);
    play_with(&(struct expected){"in-one", true, ORDER_SOLD_OUT,
                                 .script = "ready begin key one=sold-out rollback look"},
              nothing_was_read, &order);
    assert_int_equal(result->available, 0);
    play_with(&(struct expected){"plain", false, ORDER_SOLD_OUT,
                                 .script = "ready begin read READ write=sold-out rollback look=away"},
              nothing_was_read, &order);
    assert_true(result->available == STOCK_UNSEEN);
}

/* ---- Idempotency-Key ------------------------------------------------------------------------------------- */

static void test_keys_that_were_used_before(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {"plain", true, ORDER_REPLAYED, .script = "ready begin key=replay rollback"},
        {"plain", true, ORDER_KEY_MISMATCH, .script = "ready begin key=mismatch rollback"},
        {"plain", true, ORDER_KEY_IN_USE, .script = "ready begin key=in-progress rollback"},
        {"around", true, ORDER_REPLAYED,
         .script = "ready acquire LOCK begin key=replay rollback release UNLOCK"},
        {"around", true, ORDER_KEY_MISMATCH,
         .script = "ready acquire LOCK begin key=mismatch rollback release UNLOCK"},
        {"around", true, ORDER_KEY_IN_USE,
         .script = "ready acquire LOCK begin key=in-progress rollback release UNLOCK"},
        {"inside", true, ORDER_REPLAYED, .script = "ready begin key=replay rollback"},
        {"inside", true, ORDER_KEY_MISMATCH, .script = "ready begin key=mismatch rollback"},
        {"inside", true, ORDER_KEY_IN_USE, .script = "ready begin key=in-progress rollback"},
        {"twice", true, ORDER_REPLAYED,
         .script = "ready acquire LOCK begin key=replay rollback release UNLOCK"},
        {"twice", true, ORDER_KEY_MISMATCH,
         .script = "ready acquire LOCK begin key=mismatch rollback release UNLOCK"},
        {"twice", true, ORDER_KEY_IN_USE,
         .script = "ready acquire LOCK begin key=in-progress rollback release UNLOCK"},
        {"retry", true, ORDER_REPLAYED, .script = "ready begin key=replay rollback"},
        {"retry", true, ORDER_KEY_IN_USE, .script = "ready begin key=in-progress rollback"},
        {"in-one", true, ORDER_REPLAYED, .script = "ready begin key=replay rollback"},
        {"in-one", true, ORDER_KEY_MISMATCH, .script = "ready begin key=mismatch rollback"},
        {"in-one", true, ORDER_KEY_IN_USE, .script = "ready begin key=in-progress rollback"},
    };
    play_all(cases, COUNT(cases));
    struct fake_order order;
    play_with(&cases[0], NULL, &order);
    assert_int_equal(order.placing.result.order.id, 4711); /* the first order's */
}

static void other_constraint(void)
{
    fake.other_constraint = true;
}

/* A number that is there already is a bug of ours, not a first order that still runs. */
static void test_a_unique_violation_that_is_not_the_keys(void **state)
{
    (void)state;
    struct fake_order order;
    play_with(&(struct expected){"plain", true, ORDER_FAILED,
                                 .script = "ready begin key " TAKE " insert=unique rollback"},
              other_constraint, &order);
    play_with(
        &(struct expected){"in-one", true, ORDER_FAILED, .script = "ready begin key one=unique rollback"},
        other_constraint, &order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_orders_that_succeed),
        ENGINE_TEST(test_a_guarded_statement),
        ENGINE_TEST(test_what_a_created_order_tells),
        ENGINE_TEST(test_stock_that_cannot_be_taken),
        ENGINE_TEST(test_what_a_refused_order_tells),
        ENGINE_TEST(test_a_second_look_at_what_is_left),
        ENGINE_TEST(test_keys_that_were_used_before),
        ENGINE_TEST(test_a_unique_violation_that_is_not_the_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
