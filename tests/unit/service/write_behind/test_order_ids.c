/* Ids that lie ready: first drawn, first taken; none twice; never more than there is room for. */
#include "tests/unit/unit.h"

#include "service/write_behind/order_ids.h"

#include <stdio.h>

static int64_t last_id;
static enum db_status draw_status;
static const char *draw_shop = "shop";

enum db_status orders_draw_ids(struct db *db, int64_t *ret_ids, size_t count,
                               char ret_shop[static SHOP_NAME_SIZE])
{
    if (draw_status != DB_OK)
        return draw_status;
    for (size_t i = 0; i < count; i++)
        ret_ids[i] = ++last_id;
    snprintf(ret_shop, SHOP_NAME_SIZE, "%s", draw_shop);
    return DB_OK;
}

static void test_ids(void **state)
{
    struct order_ids *ids = order_ids_new();
    int64_t taken[3];
    char shop[SHOP_NAME_SIZE];
    assert_non_null(ids);
    assert_true(order_ids_run_low(ids));
    assert_false(order_ids_take(ids, taken, 1, shop));
    assert_int_equal(order_ids_draw(ids, NULL), DB_OK);
    assert_true(order_ids_take(ids, taken, 3, shop));
    assert_string_equal(shop, "shop");
    for (int i = 0; i < 3; i++)
        assert_int_equal(taken[i], i + 1);
    order_ids_return(ids, "shop", 2);
    assert_true(order_ids_take(ids, taken, 2, shop));
    assert_int_equal(taken[0], 2);
    assert_int_equal(taken[1], 4);
    order_ids_free(ids);
    order_ids_free(NULL);
}

static void test_another_database(void **state)
{
    struct order_ids *ids = order_ids_new();
    int64_t taken[1];
    char shop[SHOP_NAME_SIZE];
    last_id = 0;
    assert_int_equal(order_ids_draw(ids, NULL), DB_OK);
    draw_shop = "another";
    assert_int_equal(order_ids_draw(ids, NULL), DB_OK);
    draw_shop = "shop";
    assert_true(order_ids_take(ids, taken, 1, shop));
    assert_string_equal(shop, "another");
    assert_int_equal(taken[0], ORDER_IDS_MAX / 4 + 1);
    order_ids_free(ids);
}

/* An id that was drawn from a database is not used for an order of the database that has replaced it: there another order
 * may have that id, and the later of the two would be taken for written. */
static void test_an_id_of_a_database_that_was_replaced(void **state)
{
    struct order_ids *ids = order_ids_new();
    int64_t old[2], taken[1];
    char old_shop[SHOP_NAME_SIZE], shop[SHOP_NAME_SIZE];
    last_id = 0;
    order_ids_return(ids, "shop",
                     5); /* before the first id is drawn, there is no database that it could be of */
    assert_false(order_ids_take(ids, taken, 1, shop));
    assert_int_equal(order_ids_draw(ids, NULL), DB_OK);
    assert_true(order_ids_take(ids, old, 2, old_shop));
    draw_shop = "another";
    last_id = 7000;
    assert_int_equal(order_ids_draw(ids, NULL), DB_OK);
    draw_shop = "shop";
    order_ids_return(ids, old_shop, old[0]);
    assert_true(order_ids_take(ids, taken, 1, shop));
    assert_string_equal(shop, "another");
    assert_int_equal(taken[0], 7001);
    order_ids_return(ids, shop, taken[0]);
    assert_true(order_ids_take(ids, taken, 1, shop));
    assert_int_equal(taken[0], 7001);
    order_ids_free(ids);
}

static void test_a_draw_that_fails(void **state)
{
    struct order_ids *ids = order_ids_new();
    int64_t taken[1];
    char shop[SHOP_NAME_SIZE];
    draw_status = DB_AWAY;
    assert_int_equal(order_ids_draw(ids, NULL), DB_AWAY);
    assert_false(order_ids_take(ids, taken, 1, shop));
    draw_status = DB_OK;
    order_ids_free(ids);
}

/* Round and round the ring, with more drawn than there is room for: what is taken only grows, without a gap but for those. */
static void test_the_ring(void **state)
{
    struct order_ids *ids = order_ids_new();
    int64_t taken[1000], last = 0;
    char shop[SHOP_NAME_SIZE];
    size_t count = 0;
    last_id = 0;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < (round % 10 == 0 ? 6 : 1); i++)
            assert_int_equal(order_ids_draw(ids, NULL), DB_OK);
        while (order_ids_take(ids, taken, COUNT(taken), shop))
            for (size_t i = 0; i < COUNT(taken); i++, count++) {
                assert_true(taken[i] > last);
                last = taken[i];
            }
        assert_true(order_ids_run_low(ids));
    }
    assert_true(count > 90 * ORDER_IDS_MAX / 4);
    for (int i = 0; i < 8; i++)
        assert_int_equal(order_ids_draw(ids, NULL), DB_OK);
    assert_false(order_ids_run_low(ids));
    order_ids_return(ids, "shop", 1); /* there is no room: it is forgotten */
    assert_true(order_ids_take(ids, taken, 1, shop));
    assert_true(taken[0] > last);
    order_ids_free(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_another_database),
        cmocka_unit_test(test_an_id_of_a_database_that_was_replaced),
        cmocka_unit_test(test_a_draw_that_fails),
        cmocka_unit_test(test_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
