/* The admission queue: a reset or a switch waits for the orders that are being placed and for no others, and workers that
 * sleep are woken. */
#include "tests/unit/service/orders/admission.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_pause_waits_for_what_is_placed),
        TEST(test_a_pause_that_is_too_late),
        TEST(test_changes_leave_room_for_orders),
        TEST(test_orders_beside_changes_without_end),
        TEST(test_expiry_beside_changes_without_end),
        TEST(test_a_turn_under_own_settings),
        TEST(test_workers_that_sleep_are_woken),
        TEST(test_a_switch_waits_for_what_is_placed),
        TEST(test_a_switch_that_is_too_late),
        TEST(test_a_switch_during_a_pause),
        TEST(test_own_settings),
    };
    alarm(STUCK_S); /* a lost wake-up ends the test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
