/* The admission queue: whose order is next, how many orders are placed at once, and that a reset or a switch waits for the
 * orders that are being placed and for no others. */
#include "base/clock.h"
#include "tests/unit/unit.h"

#include "service/orders/admission_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

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

static int64_t soon(void)
{
    return monotonic_us() + PATIENCE_US;
}

static int start(void **state)
{
    order_count = 0;
    queue = admission_new(&(const struct settings){.strategy = &single},
                          &(const struct admission_bounds){.orders = ORDERS_MAX});
    return queue ? 0 : -1;
}

static int stop(void **state)
{
    admission_free(queue);
    return 0;
}

static struct queued_order *new_order(int64_t product_id, const struct strategy *strategy)
{
    struct queued_order *order = &orders[order_count++];
    *order = (struct queued_order){
        .product_id = product_id, .strategy = strategy, .deadline_us = soon() + order_count};
    return order;
}

/* The index of the order. */
static int add(int64_t product_id, const struct strategy *strategy)
{
    assert_int_equal(admission_add(queue, new_order(product_id, strategy)), ADMITTED);
    return order_count - 1;
}

/* The next batch has the order FIRST, which expired. */
static void assert_expired(struct order_batch *batch, int first)
{
    admission_end(queue, batch);
    assert_true(admission_next(queue, batch));
    assert_true(batch->expired && !batch->product && batch->count == 1 && batch->orders == &orders[first]);
}

/* The next batch has the orders from FIRST on, COUNT of them. The batch that BATCH had, if any, ends. */
static void assert_next(struct order_batch *batch, int first, size_t count)
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
static void assert_load(int64_t product_id, size_t placing, size_t held, size_t ready)
{
    struct admission_load load = admission_load(queue, product_id);
    if (load.placing != placing || load.held != held || load.ready != ready)
        fail_msg("product %lld: %zu placing, %zu held, %zu ready", (long long)product_id, load.placing,
                 load.held, load.ready);
}

static void switch_to(const struct strategy *strategy, int64_t product_limit)
{
    struct settings changes = unchanged, now;
    changes.strategy = strategy;
    changes.product_limit = product_limit;
    assert_true(admission_switch(queue, &changes, soon(), &now));
    assert_ptr_equal(now.strategy, strategy);
}

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

/* ---- pauses and switches ----------------------------------------------------------------------------------- */

struct change {
    pthread_t thread;
    int64_t product_id; /* 0: a switch */
    struct settings changes;
    int64_t deadline_us;
    bool in_time;
    atomic_bool ended;
};

static void *run_change(void *arg)
{
    struct change *change = arg;
    struct settings settings;
    change->in_time = change->product_id
                          ? product_pause(queue, change->product_id, change->deadline_us)
                          : admission_switch(queue, &change->changes, change->deadline_us, &settings);
    atomic_store(&change->ended, true);
    return NULL;
}

/* Starts the change; returns when the product's orders wait for it. */
static void begin_change(struct change *change, int64_t product_id, size_t held)
{
    if (!change->deadline_us)
        change->deadline_us = soon();
    assert_int_equal(pthread_create(&change->thread, NULL, run_change, change), 0);
    int64_t until_us = soon();
    while (admission_load(queue, product_id).held != held && monotonic_us() < until_us)
        sleep_us(200);
    assert_int_equal(admission_load(queue, product_id).held, held);
}

static bool end_change(struct change *change)
{
    assert_int_equal(pthread_join(change->thread, NULL), 0);
    return change->in_time;
}

static void test_a_pause_waits_for_what_is_placed(void **state)
{
    struct order_batch batch = {0}, elsewhere = {0};
    struct change change = {.product_id = 1};
    for (int i = 0; i < 3; i++)
        add(1, NULL);
    assert_next(&batch, 0, 1);
    begin_change(&change, 1, 2);
    sleep_us(20000);
    assert_false(atomic_load(&change.ended));
    assert_next(&elsewhere, add(2, NULL), 1); /* other products go on */
    assert_next(&batch, add(2, NULL),
                1); /* the order of product 1 ends, and none of those that wait follows */
    assert_true(end_change(&change));
    assert_load(1, 0, 2, 0);
    int64_t before_us = monotonic_us();
    product_resume(queue, 1);
    assert_load(1, 0, 0, 2);
    assert_next(&batch, 1, 1);
    assert_true(batch.orders->since_us >= before_us); /* the pause is no part of its wait */
    assert_next(&batch, 2, 1);
}

static void test_a_pause_that_is_too_late(void **state)
{
    struct order_batch batch = {0};
    add(1, NULL);
    add(1, NULL);
    assert_next(&batch, 0, 1);
    assert_false(product_pause(queue, 1, monotonic_us() + 1000));
    assert_load(1, 1, 0, 1); /* nothing is kept waiting */
    assert_next(&batch, 1, 1);
    admission_end(queue, &batch);
    assert_true(product_pause(queue, 1, 0)); /* nothing to wait for */
    product_resume(queue, 1);
}

/* A second change follows only after one of the orders that waited has been handed out. */
static void test_changes_leave_room_for_orders(void **state)
{
    struct order_batch batch = {0};
    assert_true(product_pause(queue, 1, soon()));
    add(1, NULL);
    assert_false(product_pause(queue, 1, monotonic_us() + 1000));              /* somebody else's */
    assert_int_equal(product_pause_first(queue, 1, soon()), PAUSE_OF_ANOTHER); /* at once */
    product_resume(queue, 1);
    assert_false(product_pause(queue, 1, monotonic_us() + 1000)); /* the order comes first */
    assert_load(1, 0, 0, 1);
    assert_next(&batch, 0, 1);
    admission_end(queue, &batch);
    assert_true(product_pause(queue, 1, soon()));
    product_resume(queue, 1);
    assert_int_equal(product_pause_first(queue, 1, soon()), PAUSED); /* none waits */
    product_resume(queue, 1);

    struct settings changes = unchanged, now;
    int second = add(2, NULL);
    assert_true(admission_switch(queue, &changes, soon(), &now));
    assert_false(admission_switch(queue, &changes, monotonic_us() + 1000, &now));
    assert_next(&batch, second, 1);
    admission_end(queue, &batch);
    assert_true(admission_switch(queue, &changes, soon(), &now));
    assert_true(admission_switch(queue, &changes, soon(), &now));
}

static atomic_int changes_made;
static atomic_bool stop_changing;

static void *change_all_the_time(void *arg)
{
    struct settings changes = unchanged, now;
    while (!atomic_load(&stop_changing)) {
        if (arg) {
            assert_true(admission_switch(queue, &changes, soon(), &now));
        } else {
            assert_true(product_pause(queue, 1, soon()));
            product_resume(queue, 1);
        }
        atomic_fetch_add(&changes_made, 1);
    }
    return NULL;
}

/* Changes that overlap all the time do not keep the orders waiting until they expire. */
static void test_orders_beside_changes_without_end(void **state)
{
    enum { CHANGERS = 4, ORDERS = 100 };
    pthread_t threads[CHANGERS];
    struct order_batch batch = {0};
    atomic_store(&stop_changing, false);
    for (int i = 0; i < CHANGERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_all_the_time, i % 2 ? &queue : NULL), 0);
    for (int i = 0; i < ORDERS || atomic_load(&changes_made) < ORDERS; i++) {
        order_count = 0; /* the one before was handed out */
        assert_next(&batch, add(1, NULL), 1);
        admission_end(queue, &batch);
    }
    atomic_store(&stop_changing, true);
    for (int i = 0; i < CHANGERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* Nor do changes of other products put off what has expired. */
static void test_expiry_beside_changes_without_end(void **state)
{
    pthread_t thread;
    struct order_batch batch = {0};
    assert_true(product_pause(queue, 2, soon()));
    struct queued_order *late = new_order(2, NULL);
    late->deadline_us = monotonic_us() + 50000;
    assert_int_equal(admission_add(queue, late), ADMITTED);
    atomic_store(&stop_changing, false);
    assert_int_equal(pthread_create(&thread, NULL, change_all_the_time, NULL), 0);
    assert_expired(&batch, 0);
    atomic_store(&stop_changing, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    product_resume(queue, 2);
}

static void give_own_settings(int64_t product_id, int64_t product_limit)
{
    struct settings changes = unchanged, now;
    changes.product_limit = product_limit;
    assert_true(product_pause(queue, product_id, soon()));
    assert_true(product_set_own(queue, product_id, &changes, &now));
    assert_true(now.product_limit == product_limit);
    product_resume(queue, product_id);
}

static void test_a_switch_waits_for_what_is_placed(void **state)
{
    struct order_batch batch = {0}, own = {0}, by_name = {0};
    struct change change = {.changes = unchanged};
    change.changes.strategy = &combined;
    give_own_settings(5, 0);
    for (int i = 0; i < 3; i++)
        add(1, NULL);
    int named = add(1, &other);
    assert_next(&batch, 0, 1);
    begin_change(&change, 1, 3);
    sleep_us(20000);
    assert_false(atomic_load(&change.ended));
    assert_next(&own, add(5, NULL), 1); /* has its own settings, so it goes on */
    assert_ptr_equal(own.settings.strategy, &single);
    admission_end(queue, &batch);
    assert_true(end_change(&change));
    assert_ptr_equal(product_settings(queue, 0).strategy, &combined);
    assert_ptr_equal(product_settings(queue, 1).strategy, &combined);
    assert_ptr_equal(product_settings(queue, 5).strategy, &single);
    assert_next(&batch, 1, 2); /* those that waited are placed under the new strategy, together … */
    assert_ptr_equal(batch.settings.strategy, &combined);
    assert_next(&by_name, named, 1); /* … and the one that asked for its own under that */
    assert_ptr_equal(by_name.settings.strategy, &other);
}

/* A batch of a product with its own settings is none that a switch waits for, neither while it lasts nor afterwards. */
static void test_a_turn_under_own_settings(void **state)
{
    struct order_batch own = {0}, common = {0};
    struct settings changes = unchanged, now;
    give_own_settings(5, 1);
    int first = add(5, NULL);
    add(5, NULL);
    assert_next(&own, first, 1);
    assert_true(own.limited && own.settings.product_limit == 1); /* its own limit */
    assert_load(5, 1, 1, 0);
    assert_next(&common, add(1, NULL), 1);
    assert_next(&own, first + 1, 1);
    admission_end(queue, &own);
    assert_false(admission_switch(queue, &changes, monotonic_us() + 1000, &now)); /* the common one lasts */
    admission_end(queue, &common);
    assert_true(admission_switch(queue, &changes, soon(), &now));
}

static void test_a_switch_that_is_too_late(void **state)
{
    struct order_batch batch = {0};
    struct settings changes = unchanged, now;
    changes.strategy = &combined;
    add(1, NULL);
    add(1, NULL);
    assert_next(&batch, 0, 1);
    assert_false(admission_switch(queue, &changes, monotonic_us() + 1000, &now));
    assert_ptr_equal(product_settings(queue, 0).strategy, &single);
    assert_next(&batch, 1, 1);
}

static void test_a_switch_during_a_pause(void **state)
{
    struct order_batch batch = {0};
    assert_true(product_pause(queue, 1, soon()));
    add(1, NULL);
    add(1, NULL);
    switch_to(&combined, 0);
    assert_load(1, 0, 2, 0); /* still paused */
    product_resume(queue, 1);
    assert_next(&batch, 0, 2);
    assert_ptr_equal(batch.settings.strategy, &combined);
}

static void test_own_settings(void **state)
{
    struct settings now;
    assert_false(product_has_own(queue, 1));
    for (int64_t id = 1; id <= OWN_SETTINGS_MAX; id++)
        give_own_settings(id, id);
    assert_true(product_has_own(queue, 1));
    give_own_settings(1, 77); /* again is always possible */
    assert_true(product_settings(queue, 1).product_limit == 77);
    assert_true(product_settings(queue, 2).product_limit == 2);
    assert_true(product_settings(queue, 1000).product_limit == 0);
    assert_true(product_pause(queue, 1000, soon()));
    assert_false(product_set_own(queue, 1000, &unchanged, &now));
    product_resume(queue, 1000);
    assert_false(product_has_own(queue, 1000));
}

/* ---- waking up ----------------------------------------------------------------------------------------------- */

struct sleeper {
    pthread_t thread;
    atomic_int taken;
};

static void *take_one(void *arg)
{
    struct sleeper *sleeper = arg;
    struct order_batch batch = {0};
    if (admission_next(queue, &batch) && !batch.expired)
        atomic_store(&sleeper->taken, 1);
    admission_end(queue, &batch);
    return NULL;
}

static void start_sleepers(struct sleeper *sleepers, int count)
{
    for (int i = 0; i < count; i++) {
        atomic_store(&sleepers[i].taken, 0);
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, take_one, &sleepers[i]), 0);
    }
    sleep_us(20000); /* likely asleep now; the test is right if they are not */
}

static void assert_all_took_one(struct sleeper *sleepers, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(sleepers[i].thread, NULL),
                         0); /* a lost wake-up: alarm() ends the test */
        assert_int_equal(atomic_load(&sleepers[i].taken), 1);
    }
}

static void test_workers_that_sleep_are_woken(void **state)
{
    enum { SLEEPERS = 3 };
    struct sleeper sleepers[SLEEPERS];
    struct settings now;
    start_sleepers(sleepers, SLEEPERS); /* by orders of one product, and of several */
    add(1, NULL);
    add(1, NULL);
    add(2, NULL);
    assert_all_took_one(sleepers, SLEEPERS);

    assert_true(product_pause(queue, 1, soon()));
    for (int i = 0; i < SLEEPERS; i++)
        add(1, NULL);
    start_sleepers(sleepers, SLEEPERS);
    product_resume(queue, 1); /* by the end of a pause */
    assert_all_took_one(sleepers, SLEEPERS);

    struct order_batch batch = {0};
    struct change change = {.changes = unchanged};
    add(1, NULL);
    assert_next(&batch, order_count - 1, 1);
    for (int i = 0; i < SLEEPERS; i++)
        add(1, NULL);
    begin_change(&change, 1, SLEEPERS);
    start_sleepers(sleepers, SLEEPERS);
    admission_end(queue, &batch);
    assert_true(end_change(&change)); /* by the end of a switch */
    assert_all_took_one(sleepers, SLEEPERS);

    assert_true(admission_switch(queue, &(const struct settings){.strategy = &single, .product_limit = 1},
                                 soon(), &now));
    add(1, NULL);
    assert_next(&batch, order_count - 1, 1);
    add(1, NULL);
    start_sleepers(sleepers, 1);
    admission_end(queue, &batch); /* by the end of another's batch */
    assert_all_took_one(sleepers, 1);
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

/* ---- many threads -------------------------------------------------------------------------------------------- */

enum { CLIENTS = 4, WORKERS = 4, EACH = 4000, PRODUCTS = 3, WINDOW = 60 };

/* A client has WINDOW orders on their way at most. */
struct client {
    struct queued_order orders[WINDOW];
    atomic_bool under_way[WINDOW];
};

static struct client clients[CLIENTS];
static atomic_int handed_out, placing[PRODUCTS + 1], under[PRODUCTS + 1][2], mixed, too_many, disturbed;
static atomic_bool paused[PRODUCTS + 1], clients_ended;

/* Numbers that look like chance, for pauses of different lengths. */
static unsigned some(void)
{
    static _Thread_local unsigned state = 1;
    state = state * 1103515245 + 12345;
    return state >> 16;
}

static void *be_client(void *arg)
{
    struct client *client = arg;
    for (int i = 0; i < EACH; i++) {
        int slot = i % WINDOW;
        while (atomic_load(&client->under_way[slot]))
            sleep_us(20);
        atomic_store(&client->under_way[slot], true);
        client->orders[slot] = (struct queued_order){.product_id = 1 + i % PRODUCTS, .deadline_us = soon()};
        while (admission_add(queue, &client->orders[slot]) != ADMITTED)
            sleep_us(20);
    }
    return NULL;
}

static void *be_worker(void *unused)
{
    struct order_batch batch = {0};
    while (admission_next(queue, &batch)) {
        int64_t product = batch.orders->product_id;
        bool together = batch.settings.strategy == &combined;
        if (atomic_load(&paused[product]) || batch.expired)
            atomic_fetch_add(&disturbed, 1);
        if (atomic_fetch_add(&placing[product], 1) >= (together ? 1 : 2))
            atomic_fetch_add(&too_many, 1);
        atomic_fetch_add(&under[product][together], 1);
        if (atomic_load(&under[product][!together]) > 0)
            atomic_fetch_add(&mixed, 1);
        if (some() % 8 == 0)
            sleep_us(some() % 50);
        atomic_fetch_sub(&under[product][together], 1);
        atomic_fetch_sub(&placing[product], 1);
        admission_end(queue, &batch);
        for (struct queued_order *order = batch.orders, *next; order; order = next) {
            next = order->next;
            atomic_fetch_add(&handed_out, 1);
            struct client *client = clients;
            while (order < client->orders || order >= client->orders + WINDOW)
                client++;
            atomic_store(&client->under_way[order - client->orders], false); /* from here on it may be gone */
        }
    }
    return NULL;
}

static void *be_teacher(void *unused)
{
    struct settings changes = unchanged, now;
    for (int i = 0; !atomic_load(&clients_ended); i++) {
        int64_t product = 1 + i % PRODUCTS;
        changes.strategy = i % 2 ? &combined : &single;
        changes.product_limit = 2;
        assert_true(admission_switch(queue, &changes, soon(), &now));
        assert_true(product_pause(queue, product, soon()));
        atomic_store(&paused[product], true);
        sleep_us(some() % 100);
        atomic_store(&paused[product], false);
        product_resume(queue, product);
        sleep_us(some() % 300);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    pthread_t client_threads[CLIENTS], worker_threads[WORKERS], teacher;
    switch_to(&single, 2);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&worker_threads[i], NULL, be_worker, NULL), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&client_threads[i], NULL, be_client, &clients[i]), 0);
    assert_int_equal(pthread_create(&teacher, NULL, be_teacher, NULL), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_join(client_threads[i], NULL), 0);
    atomic_store(&clients_ended, true);
    assert_int_equal(pthread_join(teacher, NULL), 0);
    admission_close(queue);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(worker_threads[i], NULL), 0);
    assert_int_equal(atomic_load(&handed_out), CLIENTS * EACH); /* each once */
    assert_int_equal(atomic_load(&too_many), 0);
    assert_int_equal(atomic_load(&mixed), 0);     /* no two strategies side by side */
    assert_int_equal(atomic_load(&disturbed), 0); /* no order is placed during a pause */
    assert_load(0, 0, 0, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

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
        TEST(test_a_pause_waits_for_what_is_placed),
        TEST(test_a_pause_that_is_too_late),
        TEST(test_changes_leave_room_for_orders),
        TEST(test_orders_beside_changes_without_end),
        TEST(test_expiry_beside_changes_without_end),
        TEST(test_a_turn_under_own_settings),
        TEST(test_workers_that_sleep_are_woken),
        TEST(test_an_expired_order_is_in_no_batch),
        TEST(test_a_switch_waits_for_what_is_placed),
        TEST(test_a_switch_that_is_too_late),
        TEST(test_a_switch_during_a_pause),
        TEST(test_own_settings),
        TEST(test_what_waits_is_handed_out_at_the_end),
        TEST(test_many_threads),
    };
    alarm(STUCK_S); /* a lost wake-up ends the test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
