/* Many orders in one transaction: who gets what, who is told what, and that nothing that befalls one is another's. */
#include "tests/unit/service/engine/batch_fakes.h"

#include <unistd.h>

/* ---- the orders ------------------------------------------------------------------------------------------ */

static const struct strategy BATCHED = {.name = "batched",
                                        .isolation = DB_READ_COMMITTED,
                                        .max_tries = 1,
                                        .take_stock = &take_while_placing,
                                        .place = place_in_batch,
                                        .combining = COMBINE_IN_POSTGRES};

struct watched {
    struct observer base;
    char steps[400];
};

static struct batch {
    struct order_request requests[ORDER_BATCH_MAX];
    struct placing placings[ORDER_BATCH_MAX], *placed[ORDER_BATCH_MAX];
    struct watched watched[ORDER_BATCH_MAX];
    size_t count;
    int64_t stock;
} batch;

static void note_step(struct observer *self, enum step step, int64_t value)
{
    struct watched *w = (struct watched *)self;
    char text[60];
    if (value == STEP_NO_VALUE)
        snprintf(text, sizeof text, "%s", step_name(step));
    else
        snprintf(text, sizeof text, "%s=%lld", step_name(step), (long long)value);
    append(w->steps, sizeof w->steps, text);
}

/* A fresh shop with so much STOCK, and no orders yet. */
static void open_shop(int64_t stock)
{
    shop = (struct fake_batch_shop){.stock = stock, .now_us = 1000ll * SECOND_US, .fails_at = 1};
    batch.count = 0;
    batch.stock = stock;
}

/* One more, behind those before it. */
static struct order_request *add_order(int64_t quantity)
{
    size_t i = batch.count++;
    batch.requests[i] = (struct order_request){.product_id = SHOP_PRODUCT, .quantity = quantity};
    batch.watched[i] = (struct watched){.base = {.on_step = note_step}};
    struct placing *p = batch.placed[i] = &batch.placings[i];
    memset(p, 0xee, sizeof *p);
    p->strategy = &BATCHED;
    p->request = &batch.requests[i];
    p->db = &shop_db;
    p->lock = NULL;
    p->on_done = NULL;
    p->observer = &batch.watched[i].base;
    p->instance = SHOP_INSTANCE;
    p->deadline_us = shop.now_us + 10 * SECOND_US;
    p->lock_deadline_us = shop.now_us + 5 * SECOND_US;
    return &batch.requests[i];
}

static void add_keyed(const char *key)
{
    add_order(1)->idempotency_key = key;
}

static void add_orders(size_t count)
{
    while (count-- > 0)
        add_order(1);
}

static enum outcome outcome_at(size_t i)
{
    return batch.placings[i].result.outcome;
}

/* The orders that were told so are those that the shop has, each once, and the stock lacks what they took. */
static void assert_books(void)
{
    int64_t sold = 0;
    size_t created = 0;
    for (size_t i = 0; i < batch.count; i++) {
        if (outcome_at(i) != ORDER_CREATED)
            continue;
        size_t found = 0;
        for (size_t j = 0; j < shop.order_count; j++)
            found += shop.orders[j].request == &batch.requests[i] &&
                     shop.orders[j].seen == batch.placings[i].result.order.stock_seen;
        assert_int_equal(found, 1);
        sold += batch.requests[i].quantity;
        created++;
    }
    assert_int_equal(shop.order_count, created);
    assert_int_equal(shop.stock, batch.stock - sold);
}

static void place_batch(void)
{
    create_batch(batch.placed, batch.count);
    assert_false(shop.open);
    assert_string_equal(shop.broken, "");
    for (size_t i = 0; i < batch.count; i++) {
        assert_true(batch.placings[i].result.tries >= 1);
        assert_non_null(memchr(batch.placings[i].result.error, 0, sizeof batch.placings[i].result.error));
        if (outcome_at(i) == ORDER_BACKEND_UNAVAILABLE)
            assert_string_equal(batch.placings[i].result.backend, "postgresql");
    }
}

/* Places them; OUTCOMES are in the order of their arrival, with spaces between. */
static void expect(const char *outcomes)
{
    char got[8192] = "";
    place_batch();
    for (size_t i = 0; i < batch.count; i++)
        append(got, sizeof got, outcome_name(outcome_at(i)));
    assert_string_equal(got, outcomes);
}

/* ---- who gets what --------------------------------------------------------------------------------------- */

static void test_first_come_first_served(void **state)
{
    static const struct {
        int64_t stock, wants[5];
        const char *outcomes;
        int64_t told[5]; /* what was left when its turn came: seen, or available */
    } cases[] = {
        {10, {1, 2, 3}, "created created created", {10, 9, 7}},
        {6, {1, 2, 3}, "created created created", {6, 5, 3}},
        {5, {2, 4, 3, 1}, "created sold-out created sold-out", {5, 3, 3, 0}},
        {5, {4, 2, 1}, "created sold-out created", {5, 1, 1}}, /* the smaller one behind still fits */
        {3, {4, 5, 3}, "sold-out sold-out created", {3, 3, 3}},
        {0, {1, 1}, "sold-out sold-out", {0, 0}},
        {-2, {1, 3}, "sold-out sold-out", {-2, -2}}, /* what another strategy has left behind */
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        open_shop(cases[c].stock);
        for (size_t i = 0; i < 5 && cases[c].wants[i] > 0; i++)
            add_order(cases[c].wants[i]);
        expect(cases[c].outcomes);
        assert_books();
        for (size_t i = 0; i < batch.count; i++) {
            const struct order_result *result = &batch.placings[i].result;
            int64_t told = result->outcome == ORDER_CREATED ? result->order.stock_seen : result->available;
            assert_int_equal(told, cases[c].told[i]);
        }
        assert_int_equal(shop.transactions, 1);
    }
}

static void test_a_batch_is_one_transaction(void **state)
{
    open_shop(ORDER_BATCH_MAX - 1);
    add_orders(ORDER_BATCH_MAX);
    place_batch();
    assert_string_equal(shop.log, "ready lock insert commit");
    for (size_t i = 0; i < ORDER_BATCH_MAX - 1; i++)
        assert_int_equal(outcome_at(i), ORDER_CREATED);
    assert_int_equal(outcome_at(ORDER_BATCH_MAX - 1), ORDER_SOLD_OUT);
    assert_books();
}

static void test_one_alone(void **state)
{
    open_shop(1);
    add_order(1);
    expect("created");
    assert_books();
    assert_string_equal(shop.log, "ready lock insert commit");

    open_shop(1);
    add_order(2);
    expect("sold-out");
    assert_string_equal(shop.log, "ready lock rollback");
    assert_int_equal(batch.placings[0].result.available, 1);
}

static void test_what_is_true_of_the_product_is_told_to_all(void **state)
{
    open_shop(5);
    shop.no_product = true;
    add_orders(2);
    expect("no-such-product no-such-product");
    assert_string_equal(shop.log, "ready lock rollback");

    open_shop(5);
    shop.kind = "units";
    shop.replayed = "old";
    add_orders(1);
    add_keyed("old");
    add_orders(1);
    expect("wrong-stock-kind replayed wrong-stock-kind");
    assert_string_equal(batch.placings[0].result.kind, "units");
    assert_string_equal(batch.placings[2].result.kind, "units");
}

/* ---- keys ------------------------------------------------------------------------------------------------ */

static void test_keys(void **state)
{
    open_shop(10);
    shop.replayed = "old";
    shop.mismatched = "other";
    shop.in_progress = "busy";
    add_keyed("new");
    add_keyed("old");
    add_keyed("other");
    add_order(1);
    add_keyed("busy");
    add_keyed("new"); /* of the same batch */
    add_keyed("newer");
    expect(
        "created replayed idempotency-mismatch created idempotency-in-progress idempotency-in-progress created");
    assert_string_equal(shop.log, "ready keys lock insert commit");
    assert_int_equal(batch.placings[1].result.order.id, 4711);
    assert_int_equal(batch.placings[3].result.order.stock_seen, 9); /* who gets nothing takes nothing */
    assert_books();
}

static void test_a_replay_of_the_last_unit_is_not_sold_out(void **state)
{
    open_shop(0);
    shop.replayed = "old";
    add_keyed("old");
    add_order(1);
    expect("replayed sold-out");
}

static void test_where_all_are_answered_by_their_keys_the_row_is_left_alone(void **state)
{
    open_shop(3);
    shop.replayed = "old";
    shop.mismatched = "other";
    add_keyed("old");
    add_keyed("other");
    expect("replayed idempotency-mismatch");
    assert_string_equal(shop.log, "ready keys rollback");
}

/* ---- failures -------------------------------------------------------------------------------------------- */

/* Three orders, of which the second is sold out; a call fails once. */
static void test_every_failure_of_every_call(void **state)
{
#define SINGLES "ready keys lock insert commit ready lock rollback ready lock insert commit"
    static const struct {
        const char *fails;
        enum db_status with;
        enum commit_fate settled;
        const char *outcomes, *log;
    } cases[] = {
        {"ready", DB_AWAY, 0, "backend-unavailable backend-unavailable backend-unavailable", "ready"},
        {"ready", DB_REFUSED, 0, "backend-unavailable backend-unavailable backend-unavailable", "ready"},
        {"keys", DB_AWAY, 0, "backend-unavailable backend-unavailable backend-unavailable",
         "ready keys rollback"},
        {"keys", DB_ERROR, 0, "created sold-out created", "ready keys rollback " SINGLES},
        {"lock", DB_AWAY, 0, "backend-unavailable backend-unavailable backend-unavailable",
         "ready keys lock rollback"},
        {"lock", DB_ERROR, 0, "created sold-out created", "ready keys lock rollback " SINGLES},
        {"lock", DB_DEADLOCK, 0, "created sold-out created", "ready keys lock rollback " SINGLES},
        {"insert", DB_AWAY, 0, "backend-unavailable backend-unavailable backend-unavailable",
         "ready keys lock insert rollback"},
        {"insert", DB_CHECK, 0, "created sold-out created", "ready keys lock insert rollback " SINGLES},
        {"insert", DB_OUT_OF_RANGE, 0, "created sold-out created",
         "ready keys lock insert rollback " SINGLES},
        {"insert", DB_UNIQUE, 0, "created sold-out created", "ready keys lock insert rollback " SINGLES},
        {"commit", DB_ERROR, 0, "created sold-out created", "ready keys lock insert commit " SINGLES},
        {"commit", DB_SERIALIZATION, 0, "created sold-out created", "ready keys lock insert commit " SINGLES},
        {"commit", DB_TIMEOUT, 0, "lock-busy lock-busy lock-busy", "ready keys lock insert commit"},
        {"commit", DB_AWAY, 0, "backend-unavailable backend-unavailable backend-unavailable",
         "ready keys lock insert commit"},
        {"commit", DB_UNKNOWN, COMMIT_COMMITTED, "created sold-out created",
         "ready keys lock insert commit settle"},
        {"commit", DB_UNKNOWN, COMMIT_ROLLED_BACK,
         "backend-unavailable backend-unavailable backend-unavailable",
         "ready keys lock insert commit settle"},
        {"commit", DB_UNKNOWN, COMMIT_UNKNOWN, "outcome-unknown backend-unavailable outcome-unknown",
         "ready keys lock insert commit settle"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        open_shop(2);
        shop.fails = cases[c].fails;
        shop.fails_with = cases[c].with;
        shop.settled = cases[c].settled;
        shop.constraint = "orders_idempotency_key";
        add_keyed("key");
        add_order(2);
        add_order(1);
        expect(cases[c].outcomes);
        assert_string_equal(shop.log, cases[c].log);
        if (!strstr(cases[c].outcomes, "unknown"))
            assert_books();
        for (size_t i = 0; i < batch.count; i++)
            if (outcome_at(i) == ORDER_BACKEND_UNAVAILABLE || outcome_at(i) == ORDER_UNKNOWN)
                assert_string_equal(batch.placings[i].result.error, SHOP_ERROR);
    }
}

static void test_what_is_answered_by_a_key_stays_so_when_the_transaction_is_lost(void **state)
{
    open_shop(5);
    shop.fails = "commit";
    shop.fails_with = DB_UNKNOWN;
    shop.settled = COMMIT_UNKNOWN;
    shop.replayed = "old";
    shop.mismatched = "other";
    add_keyed("old");
    add_order(1);
    add_keyed("other");
    expect("replayed outcome-unknown idempotency-mismatch");
}

static void test_what_one_order_has_caused_is_not_the_others(void **state)
{
    open_shop(10);
    add_orders(3);
    add_order(1)->receiver_name = POISON;
    add_orders(2);
    expect("created created created internal-error created created");
    assert_books();
    assert_int_equal(shop.transactions, 1 + 6);
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

static void set_wait(size_t i, int64_t seconds)
{
    batch.placings[i].lock_deadline_us = shop.now_us + seconds * SECOND_US;
}

static void test_who_waits_too_long_is_let_go_alone(void **state)
{
    open_shop(10);
    add_orders(4);
    set_wait(0, 3);
    set_wait(1, 1);
    set_wait(2, 5);
    set_wait(3, 1);
    shop.row_free_at_us = shop.now_us + 4 * SECOND_US;
    int64_t start_us = shop.now_us;
    expect("lock-busy lock-busy created lock-busy");
    assert_int_equal(shop.now_us - start_us, 4 * SECOND_US); /* the wait that is over is nobody else's */
    assert_books();
}

static void test_the_others_try_again_together(void **state)
{
    open_shop(10);
    shop.replayed = "old";
    add_orders(4);
    add_keyed("old");
    set_wait(1, 1);
    shop.row_free_at_us = shop.now_us + 2 * SECOND_US;
    expect("created lock-busy created created replayed");
    assert_string_equal(shop.log, "ready keys lock rollback ready lock insert commit");
    assert_int_equal(batch.placings[0].result.tries, 2);
    assert_books();
}

static void test_nobody_waits_longer_than_he_may(void **state)
{
    open_shop(10);
    add_orders(3);
    int64_t end_us = shop.now_us + 5 * SECOND_US;
    shop.row_free_at_us = INT64_MAX;
    expect("lock-busy lock-busy lock-busy");
    assert_int_equal(shop.now_us, end_us);
    assert_string_equal(shop.log, "ready lock rollback");
}

static void test_a_deadline_that_has_passed_is_its_own(void **state)
{
    open_shop(10);
    add_orders(3);
    batch.placings[1].deadline_us = shop.now_us;
    expect("created lock-busy created");
    assert_string_equal(shop.log, "ready late rollback ready lock insert commit");
    assert_books();
}

/* As where lock_wait_ms is 0: what is free is taken all the same. */
static void test_a_wait_that_is_over_takes_what_is_free(void **state)
{
    open_shop(10);
    add_orders(3);
    for (size_t i = 0; i < 3; i++)
        set_wait(i, -1);
    expect("created created created");

    open_shop(10);
    add_orders(3);
    for (size_t i = 0; i < 3; i++)
        set_wait(i, -1);
    shop.row_free_at_us = shop.now_us + SECOND_US;
    expect("lock-busy lock-busy lock-busy");
}

/* A database that says so at once, before anybody's time is up, is not asked for ever. */
static void test_a_lock_timeout_always_ends(void **state)
{
    open_shop(10);
    add_orders(3);
    set_wait(2, 1);
    shop.fails = "lock";
    shop.fails_with = DB_LOCK_TIMEOUT;
    expect("created created lock-busy");
    assert_books();
}

/* ---- steps ----------------------------------------------------------------------------------------------- */

static void test_steps_are_told_to_those_who_take_part(void **state)
{
    open_shop(5);
    shop.replayed = "old";
    add_order(2);
    add_order(4);
    add_keyed("old");
    add_order(1);
    expect("created sold-out replayed created");
    assert_string_equal(batch.watched[0].steps, "read=5 write=2 insert commit");
    assert_string_equal(batch.watched[1].steps, "read=5");
    assert_string_equal(batch.watched[2].steps, "");
    assert_string_equal(batch.watched[3].steps, "read=5 write=2 insert commit");
}

static void test_an_order_need_not_be_watched(void **state)
{
    open_shop(5);
    add_orders(3);
    batch.placings[0].observer = batch.placings[2].observer = NULL;
    expect("created created created");
    assert_string_equal(batch.watched[1].steps, "read=5 write=2 insert commit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_come_first_served),
        cmocka_unit_test(test_a_batch_is_one_transaction),
        cmocka_unit_test(test_one_alone),
        cmocka_unit_test(test_what_is_true_of_the_product_is_told_to_all),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_a_replay_of_the_last_unit_is_not_sold_out),
        cmocka_unit_test(test_where_all_are_answered_by_their_keys_the_row_is_left_alone),
        cmocka_unit_test(test_every_failure_of_every_call),
        cmocka_unit_test(test_what_is_answered_by_a_key_stays_so_when_the_transaction_is_lost),
        cmocka_unit_test(test_what_one_order_has_caused_is_not_the_others),
        cmocka_unit_test(test_who_waits_too_long_is_let_go_alone),
        cmocka_unit_test(test_the_others_try_again_together),
        cmocka_unit_test(test_nobody_waits_longer_than_he_may),
        cmocka_unit_test(test_a_deadline_that_has_passed_is_its_own),
        cmocka_unit_test(test_a_wait_that_is_over_takes_what_is_free),
        cmocka_unit_test(test_a_lock_timeout_always_ends),
        cmocka_unit_test(test_steps_are_told_to_those_who_take_part),
        cmocka_unit_test(test_an_order_need_not_be_watched),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
