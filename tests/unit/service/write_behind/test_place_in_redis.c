/* Orders whose stock lies in Redis, placed by one thread: what is asked of Redis and PostgreSQL, and what each order is told
 * for every answer. Redis, PostgreSQL and the reconciliation are played here. */
#include "tests/unit/unit.h"

#include "service/write_behind/accepted_order.h"
#include "service/write_behind/order_ids.h"
#include "service/write_behind/place_in_redis.h"
#include "service/write_behind/reconcile.h"

#include <stdio.h>

enum { MOST = 8 };

static struct {
    /* what is to come */
    enum lock_status take_status;
    bool sent;
    int not_loaded; /* the takes before the stock is there */
    enum stock_state state;
    struct {
        enum taking taking;
        int64_t value;
    } answers[MOST];
    enum reconciled reconciled;
    const char *known_key;  /* PostgreSQL has its order … */
    enum key_claim claim;   /* … and this is what it says of it */
    const char *lies_under; /* the product's name of the order that the stream has; NULL: it has none */
    bool replaced;          /* a reset has replaced the stock that it was accepted from */
    enum db_status ready;
    int draws_that_fail;

    /* what has come */
    int takes, loads, look_ups, draws;
    int64_t asked_ids[MOST], gone[MOST], next_id;
    size_t asked;
    int64_t returned[MOST];
    size_t returned_count;
} play;

enum lock_status redis_stock_take(struct redis_stock *stock, int64_t deadline_us, struct stock_orders *orders)
{
    play.takes++;
    play.asked = orders->count;
    for (size_t i = 0; i < orders->count; i++) {
        play.asked_ids[i] = orders->orders[i].id;
        play.gone[i] = orders->orders[i].gone;
        orders->orders[i].taking = play.answers[i].taking;
        orders->orders[i].value = play.answers[i].value;
        if (orders->orders[i].gone) /* the key is free again */
            orders->orders[i].taking = TAKEN;
    }
    snprintf(orders->price, sizeof orders->price, "2.50");
    orders->backlog = 0;
    orders->sent = play.sent;
    orders->state = play.not_loaded > 0 ? STOCK_NOT_LOADED : play.state;
    play.not_loaded--;
    return play.take_status;
}

const char *redis_stock_error(const struct redis_stock *stock)
{
    return "redis's words";
}

enum lock_status redis_stream_find(struct redis_stock *stock, int64_t deadline_us, int64_t order_id,
                                   struct stream_batch *ret_batch)
{
    ret_batch->count = play.lies_under ? 1 : 0;
    ret_batch->orders[0] = (struct accepted_order){.id = order_id,
                                                   .product_id = 7,
                                                   .quantity = 2,
                                                   .stock_seen = 30,
                                                   .price = "2.50",
                                                   .accepted_at = "then",
                                                   .receiver_name = play.lies_under};
    return LOCK_OK;
}

void stream_release(struct stream_batch *batch)
{
}

enum reconciled reconcile(struct db *db, struct redis_stock *stock, int64_t product_id, int64_t deadline_us,
                          struct reconciliation *ret)
{
    assert_int_equal(product_id, 7);
    play.loads++;
    *ret = (struct reconciliation){.lock_status = LOCK_AWAY, .db_status = DB_AWAY, .product.kind = "units"};
    return play.reconciled;
}

enum db_status db_ready(struct db *db)
{
    return play.ready;
}

bool order_is_outdated(struct db *db, const struct accepted_order *order)
{
    return play.replaced;
}

void db_set_deadline(struct db *db, int64_t deadline_us, int64_t lock_deadline_us)
{
}

const char *db_error(const struct db *db)
{
    return "the database's words";
}

enum db_status orders_claim_keys(struct db *db, struct order_draft *drafts, size_t count)
{
    play.look_ups++;
    for (size_t i = 0; i < count; i++) {
        bool known = play.known_key && strcmp(drafts[i].request->idempotency_key, play.known_key) == 0;
        drafts[i].claim = known ? play.claim : KEY_NEW;
    }
    return DB_OK;
}

bool order_ids_take(struct order_ids *ids, int64_t *ret_ids, size_t count,
                    char ret_shop[static SHOP_NAME_SIZE])
{
    if (play.draws == 0 && play.draws_that_fail >= 0)
        return false;
    for (size_t i = 0; i < count; i++)
        ret_ids[i] = ++play.next_id;
    snprintf(ret_shop, SHOP_NAME_SIZE, "shop");
    return true;
}

void order_ids_return(struct order_ids *ids, const char *shop, int64_t id)
{
    assert_string_equal(shop, "shop");
    play.returned[play.returned_count++] = id;
}

enum db_status order_ids_draw(struct order_ids *ids, struct db *db)
{
    play.draws++;
    return play.draws_that_fail > 0 ? DB_AWAY : DB_OK;
}

/* ---- the orders ------------------------------------------------------------------------------------------------- */

static struct strategy strategy = {.name = "redis-stock"};
static struct order_request requests[MOST];
static struct placing placings[MOST];

static int set_up(void **state)
{
    memset(&play, 0, sizeof play);
    play.state = STOCK_TAKEN;
    play.draws_that_fail = -1; /* ids lie ready */
    for (size_t i = 0; i < MOST; i++) {
        requests[i] = (struct order_request){.product_id = 7, .quantity = 2};
        placings[i] = (struct placing){.strategy = &strategy,
                                       .request = &requests[i],
                                       .redis = (struct redis_stock *)&play, /* never looked into */
                                       .instance = "unit"};
    }
    return 0;
}

static void place(size_t count)
{
    struct placing *orders[MOST];
    for (size_t i = 0; i < count; i++)
        orders[i] = &placings[i];
    create_in_redis(orders, count);
}

static void test_taken(void **state)
{
    play.answers[0].value = 40;
    place(1);
    const struct order *order = &placings[0].result.order;
    assert_int_equal(placings[0].result.outcome, ORDER_ACCEPTED);
    assert_int_equal(order->id, 1);
    assert_int_equal(order->stock_seen, 40);
    assert_string_equal(order->amount, "5.00");
    assert_string_equal(order->status, "accepted");
    assert_string_equal(order->strategy, "redis-stock");
    assert_int_equal(strlen(order->created_at), strlen("2026-01-01T00:00:00.000000Z"));
    assert_int_equal(play.takes, 1);
    assert_int_equal(play.look_ups + play.loads + play.draws, 0); /* PostgreSQL is not asked */
}

static void test_each_has_its_own_answer(void **state)
{
    play.answers[0].value = 3;
    play.answers[1].taking = TOO_FEW;
    play.answers[1].value = 1;
    play.answers[2].value = 5;
    place(3);
    assert_int_equal(placings[0].result.outcome, ORDER_ACCEPTED);
    assert_int_equal(placings[1].result.outcome, ORDER_SOLD_OUT);
    assert_int_equal(placings[1].result.available, 1);
    assert_int_equal(placings[2].result.outcome, ORDER_ACCEPTED);
    assert_int_equal(placings[2].result.order.id, 3);
    assert_int_equal(play.returned_count, 1); /* an id that nobody has is kept */
    assert_int_equal(play.returned[0], 2);
}

static void test_not_loaded(void **state)
{
    play.not_loaded = 2;
    place(2);
    assert_int_equal(play.loads, 2);
    assert_int_equal(placings[1].result.outcome, ORDER_ACCEPTED);
    assert_int_equal(play.returned_count, 4);

    static const struct {
        enum reconciled reconciled;
        enum outcome outcome;
        const char *backend;
    } failures[] = {{RECONCILE_NO_PRODUCT, ORDER_NO_SUCH_PRODUCT, NULL},
                    {RECONCILE_OTHER_KIND, ORDER_WRONG_STOCK_KIND, NULL},
                    {RECONCILE_DATABASE, ORDER_BACKEND_UNAVAILABLE, "postgresql"},
                    {RECONCILE_REDIS, ORDER_BACKEND_UNAVAILABLE, "redis"}};
    for (size_t i = 0; i < COUNT(failures); i++) {
        set_up(NULL);
        play.not_loaded = 1;
        play.reconciled = failures[i].reconciled;
        place(2);
        for (size_t j = 0; j < 2; j++) {
            assert_int_equal(placings[j].result.outcome, failures[i].outcome);
            if (failures[i].backend)
                assert_string_equal(placings[j].result.backend, failures[i].backend);
            if (failures[i].outcome == ORDER_WRONG_STOCK_KIND)
                assert_string_equal(placings[j].result.kind, "units");
        }
    }
}

/* A stock that is lost again and again is no reason to try for ever. */
static void test_never_loaded(void **state)
{
    play.not_loaded = 1000;
    place(1);
    assert_int_equal(placings[0].result.outcome, ORDER_CONFLICT);
    assert_true(play.takes < 10);
}

static void test_redis_fails(void **state)
{
    static const struct {
        enum lock_status status;
        bool sent;
        enum outcome outcome;
    } cases[] = {{LOCK_AWAY, false, ORDER_BACKEND_UNAVAILABLE},
                 {LOCK_AWAY, true, ORDER_UNKNOWN},
                 {LOCK_REFUSED, true, ORDER_BACKEND_UNAVAILABLE},
                 {LOCK_UNAVAILABLE, false, ORDER_BACKEND_UNAVAILABLE},
                 {LOCK_FAILED, false, ORDER_FAILED}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        set_up(NULL);
        play.take_status = cases[i].status;
        play.sent = cases[i].sent;
        place(2);
        for (size_t j = 0; j < 2; j++) {
            assert_int_equal(placings[j].result.outcome, cases[i].outcome);
            assert_string_equal(placings[j].result.error, "redis's words");
            assert_string_equal(placings[j].result.backend, "redis");
        }
        assert_int_equal(play.takes, 1);
        assert_int_equal(play.returned_count, 0); /* they may be somebody's */
    }
}

static void test_crowded(void **state)
{
    play.state = STOCK_CROWDED;
    place(2);
    assert_int_equal(placings[0].result.outcome, ORDER_OVERLOADED);
    assert_int_equal(placings[1].result.outcome, ORDER_OVERLOADED);
    assert_int_equal(play.returned_count, 2);
}

static void test_no_ids(void **state)
{
    play.draws_that_fail = 0;
    place(1);
    assert_int_equal(play.draws, 1);
    assert_int_equal(placings[0].result.outcome, ORDER_ACCEPTED);
    set_up(NULL);
    play.draws_that_fail = 1;
    place(2);
    assert_int_equal(placings[1].result.outcome, ORDER_BACKEND_UNAVAILABLE);
    assert_string_equal(placings[1].result.backend, "postgresql");
    assert_int_equal(play.takes, 0);
}

/* ---- keys ---------------------------------------------------------------------------------------------------------- */

static void test_a_key_that_postgresql_knows(void **state)
{
    static const struct {
        enum key_claim claim;
        enum outcome outcome;
    } cases[] = {{KEY_REPLAY, ORDER_REPLAYED},
                 {KEY_MISMATCH, ORDER_KEY_MISMATCH},
                 {KEY_IN_PROGRESS, ORDER_KEY_IN_USE}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        set_up(NULL);
        requests[0].idempotency_key = "new";
        requests[1].idempotency_key = "old";
        play.known_key = "old";
        play.claim = cases[i].claim;
        place(3);
        assert_int_equal(placings[0].result.outcome, ORDER_ACCEPTED);
        assert_int_equal(placings[1].result.outcome, cases[i].outcome);
        assert_int_equal(placings[2].result.outcome, ORDER_ACCEPTED);
        assert_int_equal(play.look_ups, 1);
        assert_int_equal(play.asked, 2);
    }
}

static void test_postgresql_away_with_a_key(void **state)
{
    requests[0].idempotency_key = "k";
    play.ready = DB_AWAY;
    place(1);
    assert_int_equal(placings[0].result.outcome, ORDER_BACKEND_UNAVAILABLE);
    assert_int_equal(play.takes, 0);
    place(2); /* the other has no key */
    assert_int_equal(placings[0].result.outcome, ORDER_BACKEND_UNAVAILABLE);
    assert_string_equal(placings[0].result.backend, "postgresql");
    assert_int_equal(placings[1].result.outcome, ORDER_ACCEPTED);
}

static void test_a_key_that_redis_knows(void **state)
{
    requests[0].idempotency_key = "k";
    requests[0].receiver_name = "Ada";
    play.answers[0].taking = KEY_IS_KNOWN;
    play.answers[0].value = 77;
    play.lies_under = "Ada";
    place(1);
    assert_int_equal(placings[0].result.outcome, ORDER_REPLAYED);
    assert_int_equal(placings[0].result.order.id, 77);
    assert_string_equal(placings[0].result.order.status, "accepted");
    assert_int_equal(play.returned_count, 1);
    play.lies_under = "Bob";
    place(1);
    assert_int_equal(placings[0].result.outcome, ORDER_KEY_MISMATCH);
}

/* Its order is in the stream no more: it has been written meanwhile, or a reset has thrown it away. */
static void test_a_key_whose_order_has_left_the_stream(void **state)
{
    requests[0].idempotency_key = "k";
    play.answers[0].taking = KEY_IS_KNOWN;
    play.answers[0].value = 77;
    place(1);
    assert_int_equal(play.takes, 2);
    assert_int_equal(play.gone[0], 77);
    assert_int_equal(placings[0].result.outcome, ORDER_ACCEPTED);
}

/* Its order is still in the stream, but a reset has replaced the stock, so the writer will drop it. */
static void test_a_key_whose_order_is_outdated(void **state)
{
    requests[0].idempotency_key = "k";
    play.answers[0].taking = KEY_IS_KNOWN;
    play.answers[0].value = 77;
    play.lies_under = "Ada";
    play.replaced = true;
    place(1);
    assert_int_equal(play.gone[0], 77);
    assert_int_equal(placings[0].result.outcome, ORDER_ACCEPTED);
}

/* ---- amounts, and ids ----------------------------------------------------------------------------------------------- */

static void test_amounts(void **state)
{
    static const struct {
        const char *price;
        int64_t quantity;
        const char *amount; /* NULL: there is none */
    } cases[] = {{"19.90", 2, "39.80"},
                 {"0.00", 1000000, "0.00"},
                 {"0.01", 1, "0.01"},
                 {"0.01", 150, "1.50"},
                 {"9999999999.99", 1000000, "9999999999990000.00"},
                 {"12.3", 1, NULL},
                 {"12", 1, NULL},
                 {"", 1, NULL},
                 {".50", 1, NULL},
                 {"1.234", 1, NULL},
                 {"-1.00", 1, NULL},
                 {"1.0x", 1, NULL},
                 {"1..0", 1, NULL},
                 {"99999999999999999999.00", 1, NULL},
                 {"92233720368547758.07", 1, "92233720368547758.07"},
                 {"92233720368547758.08", 1, NULL},
                 {"92233720368547758.07", 2, NULL}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char amount[32] = "untouched";
        assert_int_equal(accepted_amount(cases[i].price, cases[i].quantity, amount), cases[i].amount != NULL);
        if (cases[i].amount)
            assert_string_equal(amount, cases[i].amount);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_taken, set_up),
        cmocka_unit_test_setup(test_each_has_its_own_answer, set_up),
        cmocka_unit_test_setup(test_not_loaded, set_up),
        cmocka_unit_test_setup(test_never_loaded, set_up),
        cmocka_unit_test_setup(test_redis_fails, set_up),
        cmocka_unit_test_setup(test_crowded, set_up),
        cmocka_unit_test_setup(test_no_ids, set_up),
        cmocka_unit_test_setup(test_a_key_that_postgresql_knows, set_up),
        cmocka_unit_test_setup(test_postgresql_away_with_a_key, set_up),
        cmocka_unit_test_setup(test_a_key_that_redis_knows, set_up),
        cmocka_unit_test_setup(test_a_key_whose_order_is_outdated, set_up),
        cmocka_unit_test_setup(test_a_key_whose_order_has_left_the_stream, set_up),
        cmocka_unit_test(test_amounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
