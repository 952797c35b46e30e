/* What the tests of the admission queue share: a queue for each test, orders for it, and what is expected of it. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_ORDERS_ADMISSION_H
#define OVERSELL_TESTS_UNIT_SERVICE_ORDERS_ADMISSION_H

#include "base/clock.h"
#include "tests/unit/unit.h"

#include "service/orders/admission_queue.h"

static const struct strategy single = {.name = "single", .combining = COMBINE_NONE},
                             other = {.name = "other", .combining = COMBINE_NONE},
                             combined = {.name = "combined", .combining = COMBINE_IN_POSTGRES},
                             redis = {.name = "redis", .combining = COMBINE_IN_REDIS};

enum { ORDERS_MAX = 400 };

static struct queued_order orders[ORDERS_MAX];
static int order_count;
static struct admission_queue *queue;

static const struct settings unchanged = {
    .lock_ttl_ms = -1, .lock_wait_ms = -1, .think_ms = -1, .product_limit = -1};

static inline int64_t soon(void)
{
    return monotonic_us() + PATIENCE_US;
}

static inline int start(void **state)
{
    order_count = 0;
    queue = admission_new(&(const struct settings){.strategy = &single},
                          &(const struct admission_bounds){.orders = ORDERS_MAX});
    return queue ? 0 : -1;
}

static inline int stop(void **state)
{
    admission_free(queue);
    return 0;
}

static inline struct queued_order *new_order(int64_t product_id, const struct strategy *strategy)
{
    struct queued_order *order = &orders[order_count++];
    *order = (struct queued_order){
        .product_id = product_id, .strategy = strategy, .deadline_us = soon() + order_count};
    return order;
}

/* The index of the order. */
static inline int add(int64_t product_id, const struct strategy *strategy)
{
    assert_int_equal(admission_add(queue, new_order(product_id, strategy)), ADMITTED);
    return order_count - 1;
}

/* The next batch has the order FIRST, which expired. */
static inline void assert_expired(struct order_batch *batch, int first)
{
    admission_end(queue, batch);
    assert_true(admission_next(queue, batch));
    assert_true(batch->expired && !batch->product && batch->count == 1 && batch->orders == &orders[first]);
}

/* The next batch has the orders from FIRST on, COUNT of them. The batch that BATCH had, if any, ends. */
static inline void assert_next(struct order_batch *batch, int first, size_t count)
{
    admission_end(queue, batch);
    assert_true(admission_next(queue, batch));
    assert_true(!batch->expired && batch->product);
    assert_int_equal(batch->count, count);
    const struct queued_order *order = batch->orders;
    for (size_t i = 0; i < count; i++, order = order->next)
        assert_ptr_equal(order, &orders[(size_t)first + i]);
    assert_null(order);
}

/* What waits, and what is being placed. */
static inline void assert_load(int64_t product_id, size_t placing, size_t held, size_t ready)
{
    struct admission_load load = admission_load(queue, product_id);
    if (load.placing != placing || load.held != held || load.ready != ready)
        fail_msg("product %lld: %zu placing, %zu held, %zu ready", (long long)product_id, load.placing,
                 load.held, load.ready);
}

static inline void switch_to(const struct strategy *strategy, int64_t product_limit)
{
    struct settings changes = unchanged, now;
    changes.strategy = strategy;
    changes.product_limit = product_limit;
    assert_true(admission_switch(queue, &changes, soon(), &now));
    assert_ptr_equal(now.strategy, strategy);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

#endif
