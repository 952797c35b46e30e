/* The engine, call by call: what an order comes to where servers and locks do what they are asked. */
#include "tests/unit/service/engine/engine_cases.h"

/* ---- all goes well --------------------------------------------------------------------------------------- */

static void test_orders_that_succeed(void **state)
{
    static const struct expected cases[] = {
        {"plain", false, ORDER_CREATED, .script = "ready begin " SELL " commit COMMIT"},
        {"plain", true, ORDER_CREATED, .script = "ready begin key " SELL " commit COMMIT"},
        {"retry", false, ORDER_CREATED, .script = "ready begin " SELL " commit COMMIT"},
        {"retry", true, ORDER_CREATED, .script = "ready begin key " SELL " commit COMMIT"},
        {"around", false, ORDER_CREATED, .script = LOCKED SELL " commit COMMIT" UNLOCKED},
        {"around", true, ORDER_CREATED, .script = LOCKED "key " SELL " commit COMMIT" UNLOCKED},
        {"inside", false, ORDER_CREATED, .script = INSIDE SELL UNLOCKED " commit COMMIT"},
        {"inside", true, ORDER_CREATED,
         .script = "ready begin key acquire LOCK " SELL UNLOCKED " commit COMMIT"},
        {"twice", false, ORDER_CREATED, .script = TAKEN "begin insert INSERT commit COMMIT-ORDER"},
        {"twice", true, ORDER_CREATED,
         .script = LOCKED "key acquire " TAKE " commit COMMIT-STOCK" UNLOCKED_TWICE
                          " begin insert INSERT commit COMMIT-ORDER"},
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
    PLAY("plain", false, ORDER_CREATED, .script = "ready begin take TAKE insert INSERT commit COMMIT",
         .setup = guarded);
    PLAY("plain", false, ORDER_SOLD_OUT, .script = "ready begin take=sold-out rollback", .setup = guarded);
}

static void test_what_a_created_order_tells(void **state)
{
    const struct order_result *result = PLAY("plain", false, ORDER_CREATED,
                                             .script = "ready begin " SELL " commit COMMIT");
    assert_int_equal(result->order.id, 4712);
    assert_int_equal(result->order.product_id, FAKE_PRODUCT);
    result = PLAY("in-one", false, ORDER_CREATED, .script = "ready one COMMIT");
    assert_int_equal(result->order.id, 4712);
}

/* ---- the stock cannot be taken --------------------------------------------------------------------------- */

static void test_stock_that_cannot_be_taken(void **state)
{
    static const struct failure refusals[] = {
        {"no-product", ORDER_NO_SUCH_PRODUCT, ORDER_NO_SUCH_PRODUCT, NULL},
        {"wrong-kind", ORDER_WRONG_STOCK_KIND, ORDER_WRONG_STOCK_KIND, NULL},
        {"sold-out", ORDER_SOLD_OUT, ORDER_SOLD_OUT, NULL},
        {"busy", ORDER_LOCK_TIMEOUT, ORDER_LOCK_TIMEOUT, NULL},
        {"conflict", ORDER_CONFLICT, ORDER_CONFLICT, NULL},
    };
    fail_at("read", refusals, COUNT(refusals), NULL);
    fail_at("write", refusals, COUNT(refusals), NULL);
    fail_at("one", refusals, COUNT(refusals), NULL);
}

static void nothing_was_read(void)
{
    fake.available = STOCK_UNSEEN;
    fake.look_finds = 0;
}

static void test_what_a_refused_order_tells(void **state)
{
    static const struct expected sold_out[] = {
        {"plain", false, ORDER_SOLD_OUT, .script = "ready begin read=sold-out rollback"},
        {"in-one", false, ORDER_SOLD_OUT, .script = "ready one=sold-out"},
    };
    for (size_t i = 0; i < COUNT(sold_out); i++)
        assert_int_equal(play(&sold_out[i])->available, 1);
    const struct order_result *result = PLAY("plain", false, ORDER_WRONG_STOCK_KIND,
                                             .script = "ready begin read=wrong-kind rollback");
    assert_string_equal(result->kind, "buckets");
    result = PLAY("plain", false, ORDER_NO_SUCH_PRODUCT, .script = "ready begin read=no-product rollback");
    assert_true(result->available == STOCK_UNSEEN);
    assert_string_equal(result->kind, "");
}

/* Where the failed statement could not say what is left, one look outside the transaction and the lock does. */
static void test_a_second_look_at_what_is_left(void **state)
{
    static const struct expected cases[] = {
        {"plain", false, ORDER_SOLD_OUT, .script = "ready begin read READ write=sold-out rollback look"},
        {"around", false, ORDER_SOLD_OUT,
         .script = LOCKED "read READ write=sold-out rollback" UNLOCKED " look"},
        {"in-one", true, ORDER_SOLD_OUT, .script = "ready begin key one=sold-out rollback look"},
        {"plain", false, ORDER_SOLD_OUT, .script = "ready begin read READ write=sold-out rollback look=away"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct expected e = cases[i];
        e.setup = nothing_was_read;
        assert_true(play(&e)->available == (strstr(e.script, "look=away") ? STOCK_UNSEEN : 0));
    }
}

/* ---- Idempotency-Key ------------------------------------------------------------------------------------- */

static void test_keys_that_were_used_before(void **state)
{
    static const struct failure claims[] = {
        {"replay", 0, ORDER_REPLAYED, NULL},
        {"mismatch", 0, ORDER_KEY_MISMATCH, NULL},
        {"in-progress", 0, ORDER_KEY_IN_USE, NULL},
    };
    fail_at("key", claims, COUNT(claims), NULL);
    const struct order_result *result = PLAY("plain", true, ORDER_REPLAYED,
                                             .script = "ready begin key=replay rollback");
    assert_int_equal(result->order.id, 4711); /* the first order's */
}

static void other_constraint(void)
{
    fake.other_constraint = true;
}

/* A number that is there already is a bug of ours, not a first order that still runs. */
static void test_a_unique_violation_that_is_not_the_keys(void **state)
{
    PLAY("plain", true, ORDER_FAILED, .script = "ready begin key " TAKE " insert=unique rollback",
         .setup = other_constraint);
    PLAY("in-one", true, ORDER_FAILED, .script = "ready begin key one=unique rollback",
         .setup = other_constraint);
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
