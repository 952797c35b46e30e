/* The admission queue: whose order is next, how many orders are placed at once, orders whose deadline passes, and the end. */
#include "tests/unit/service/orders/admission.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- whose order is next -------------------------------------------------------------------------------------- */

static void test_first_come_first_served(void **state)
{
    struct order_batch batch = {0};
    for (int i = 0; i < 5; i++)
        add(7, NULL);
    assert_load(7, 0, 0, 5);
    assert_load(8, 0, 0, 0);
    for (int i = 0; i < 5; i++) {
        assert_next(&batch, i, 1);
        assert_ptr_equal(batch.settings.strategy, &single);
        assert_false(batch.limited);
        assert_load(7, 1, 0, (size_t)(4 - i));
    }
    assert_int_equal(admission_busy(queue), 1);
    admission_end(queue, &batch);
    assert_int_equal(admission_busy(queue), 0);
    admission_end(queue, &batch); /* once is enough */
    assert_int_equal(admission_busy(queue), 0);
    assert_load(7, 0, 0, 0);
}

static void test_products_in_turn(void **state)
{
    struct order_batch batch = {0};
    for (int i = 0; i < 3; i++)
        add(1, NULL);
    int second = add(2, NULL), third = add(3, NULL);
    assert_next(&batch, 0, 1);
    assert_next(&batch, second, 1); /* before the others of the busy product */
    assert_next(&batch, third, 1);
    assert_next(&batch, 1, 1);
    assert_next(&batch, 2, 1);
}

static void test_the_bound(void **state)
{
    struct admission_queue *small = admission_new(&(const struct settings){.strategy = &single},
                                                  &(const struct admission_bounds){.orders = 2});
    struct order_batch batch = {0};
    struct queued_order *refused = new_order(3, NULL);
    assert_int_equal(admission_add(small, new_order(1, NULL)), ADMITTED);
    assert_int_equal(admission_add(small, new_order(2, NULL)), ADMITTED);
    assert_int_equal(admission_add(small, refused), QUEUE_FULL); /* of all products together */
    assert_true(admission_next(small, &batch));
    assert_int_equal(admission_add(small, refused), ADMITTED);
    admission_free(small);
    admission_free(NULL);
}

/* One product keeps neither all workers nor the whole queue from the others. */
static void test_the_bounds_of_a_product(void **state)
{
    struct admission_queue *before = queue;
    struct order_batch batches[4] = {{0}};
    queue = admission_new(
        &(const struct settings){.strategy = &single},
        &(const struct admission_bounds){.orders = 10, .orders_of_product = 3, .workers_of_product = 2});
    for (int i = 0; i < 3; i++)
        add(1, NULL);
    assert_int_equal(admission_add(queue, new_order(1, NULL)), PRODUCT_FULL);
    assert_load(1, 0, 1, 2);
    assert_next(&batches[0], 0, 1);
    assert_false(batches[0].limited);
    assert_next(&batches[1], 1, 1);
    assert_load(1, 2, 1, 0); /* it has all the workers that it may have */
    int elsewhere = add(2, NULL);
    assert_next(&batches[2], elsewhere, 1);
    assert_next(&batches[0], 2, 1);
    int free_of_it = add(0, NULL); /* what is no product may have all workers, but no more of the queue */
    assert_next(&batches[3], free_of_it, 1);
    for (int i = 0; i < 3; i++)
        add(0, NULL);
    assert_int_equal(admission_add(queue, new_order(0, NULL)), PRODUCT_FULL);
    admission_free(queue);
    queue = before;
}

static void test_a_limit(void **state)
{
    struct order_batch batches[3] = {{0}};
    switch_to(&single, 2);
    for (int i = 0; i < 5; i++)
        add(1, NULL);
    int elsewhere = add(2, NULL);
    assert_load(1, 0, 3, 2);
    assert_next(&batches[0], 0, 1);
    assert_true(batches[0].limited);
    assert_next(&batches[1], elsewhere, 1);
    assert_next(&batches[2], 1, 1);
    assert_load(1, 2, 3, 0); /* the limit is reached */
    assert_load(0, 3, 3, 0);
    assert_int_equal(admission_busy(queue), 3);
    assert_next(&batches[0], 2, 1); /* that order ends, and the next one of its product follows */
    assert_next(&batches[2], 3, 1);
    assert_next(&batches[2], 4, 1);
    assert_load(1, 2, 0, 0);
}

static void test_orders_together(void **state)
{
    struct order_batch batch = {0}, alone = {0};
    switch_to(&combined, 0);
    for (int i = 0; i < ORDER_BATCH_MAX + 2; i++)
        add(1, NULL);
    int by_name = add(1, &single);
    assert_next(&batch, 0, ORDER_BATCH_MAX);
    assert_true(batch.limited);
    assert_load(1, ORDER_BATCH_MAX, 2, 1);
    assert_next(&alone, by_name, 1); /* does not wait for another strategy's batch */
    assert_ptr_equal(alone.settings.strategy, &single);
    assert_next(&batch, ORDER_BATCH_MAX, 2);
}

static void test_strategies_by_name(void **state)
{
    struct order_batch batches[3] = {{0}};
    int first = add(1, &combined), in_redis = add(1, &redis), last = add(1, &combined), alone = add(1, NULL);
    assert_load(1, 0, 0, 4);
    assert_true(admission_next(queue, &batches[0]));
    assert_int_equal(batches[0].count, 2); /* both of the strategy that combines them */
    assert_ptr_equal(batches[0].orders, &orders[first]);
    assert_ptr_equal(batches[0].orders->next, &orders[last]);
    assert_ptr_equal(batches[0].settings.strategy, &combined);
    assert_next(&batches[1], in_redis, 1);
    assert_next(&batches[2], alone, 1);
    assert_load(1, 4, 0, 0);
}

static void test_no_product_has_no_limit(void **state)
{
    struct order_batch batches[3] = {{0}};
    switch_to(&combined, 1);
    for (int i = 0; i < 3; i++)
        add(0, NULL);
    for (int i = 0; i < 3; i++) {
        assert_next(&batches[i], i, 1);
        assert_false(batches[i].limited);
    }
}

/* ---- deadlines --------------------------------------------------------------------------------------------- */

static void test_an_order_that_expired(void **state)
{
    struct order_batch batch = {0};
    struct queued_order *late = new_order(1, &combined);
    late->deadline_us = monotonic_us() - 1;
    assert_int_equal(admission_add(queue, late), ADMITTED);
    add(1, &combined);
    assert_expired(&batch, 0);
    assert_ptr_equal(batch.settings.strategy, &combined);
    assert_load(1, 0, 0, 1); /* no worker places it */
    assert_next(&batch, 1, 1);
}

/* Orders of a batch that follow one that expired are placed without it. */
static void test_an_expired_order_is_in_no_batch(void **state)
{
    struct order_batch batch = {0};
    switch_to(&combined, 0);
    add(1, NULL);
    struct queued_order *late = new_order(1, NULL);
    late->deadline_us = monotonic_us() - 1;
    assert_int_equal(admission_add(queue, late), ADMITTED);
    add(1, NULL);
    assert_next(&batch, 0, 1);
    assert_expired(&batch, 1);
    assert_next(&batch, 2, 1);
}

static void test_a_deadline_passes_during_a_pause(void **state)
{
    struct order_batch batch = {0};
    assert_true(product_pause(queue, 1, soon()));
    struct queued_order *late = new_order(1, NULL);
    late->deadline_us = monotonic_us() + 20000;
    assert_int_equal(admission_add(queue, late), ADMITTED);
    add(1, NULL);
    assert_expired(&batch, 0); /* waits until then */
    assert_true(monotonic_us() >= late->deadline_us);
    assert_load(1, 0, 1, 0);
    product_resume(queue, 1);
    assert_next(&batch, 1, 1);
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

static void *take_all(void *arg)
{
    atomic_int *taken = arg;
    struct order_batch batch = {0};
    while (admission_next(queue, &batch)) {
        atomic_fetch_add(taken, (int)batch.count);
        admission_end(queue, &batch);
    }
    return NULL;
}

static void test_what_waits_is_handed_out_at_the_end(void **state)
{
    enum { WORKERS = 4 };
    pthread_t threads[WORKERS];
    atomic_int taken = 0;
    assert_true(product_pause(queue, 1, soon()));
    add(1, NULL);
    add(2, NULL);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_all, &taken), 0);
    admission_close(queue);
    assert_int_equal(admission_add(queue, new_order(3, NULL)), QUEUE_FULL);
    sleep_us(5000);
    product_resume(queue, 1);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&taken), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_come_first_served),
        TEST(test_products_in_turn),
        TEST(test_the_bound),
        TEST(test_the_bounds_of_a_product),
        TEST(test_a_limit),
        TEST(test_orders_together),
        TEST(test_strategies_by_name),
        TEST(test_no_product_has_no_limit),
        TEST(test_an_order_that_expired),
        TEST(test_a_deadline_passes_during_a_pause),
        TEST(test_an_expired_order_is_in_no_batch),
        TEST(test_what_waits_is_handed_out_at_the_end),
    };
    alarm(STUCK_S); /* a lost wake-up ends the test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
