/* The gate: a reset and the orders of its product keep out of each other's way, and a switch of the strategy waits
 * for those that run and keeps new ones waiting. */
#include "tests/unit/unit.h"

#include "service/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SHORT_US = 60000, A_LOT_LATER_US = 5 * 1000 * 1000 };

static struct gate *new_gate(int64_t think_ms)
{
    struct gate *gate = gate_new(&(struct settings){
        .strategy = &strategies[0], .lock_ttl_ms = 1, .lock_wait_ms = 2, .think_ms = think_ms});
    assert_non_null(gate);
    return gate;
}

static struct settings settings_of(int64_t think_ms)
{
    return (struct settings){
        .strategy = &strategies[1], .lock_ttl_ms = 10, .lock_wait_ms = 20, .think_ms = think_ms};
}

static int64_t soon(void)
{
    return monotonic_us() + PATIENCE_US;
}

/* ---- entering without waiting ------------------------------------------------------------------------------ */

static void test_who_may_not_wait_is_kept_out(void **state)
{
    (void)state;
    struct gate *gate = new_gate(7);
    struct settings settings = {0};
    assert_true(gate_try_enter(gate, 1, &settings));
    assert_int_equal(settings.think_ms, 7);
    assert_false(gate_close(gate, 1, 0)); /* it counts as running */
    gate_leave(gate, 1);
    assert_true(gate_close(gate, 1, soon()));
    settings.think_ms = 99;
    assert_false(gate_try_enter(gate, 1, &settings));
    assert_int_equal(settings.think_ms, 99);
    assert_true(gate_try_enter(gate, 2, &settings));
    gate_leave(gate, 2);
    gate_open(gate, 1);
    assert_true(gate_try_enter(gate, 1, &settings));
    gate_leave(gate, 1);
    gate_free(gate);
}

/* ---- something that waits at the gate, in a thread of its own --------------------------------------------- */

enum action { ENTER, CLOSE, SWITCH };

struct waiter {
    struct gate *gate;
    enum action action;
    int64_t product_id, deadline_us;
    struct settings new_settings;
    atomic_bool started, done;
    pthread_t thread;
    /* out */
    bool in_time;
    struct settings settings;
    int64_t ended_us;
};

static void *wait_at_gate(void *arg)
{
    struct waiter *w = arg;
    atomic_store(&w->started, true);
    switch (w->action) {
    case ENTER: w->in_time = gate_enter(w->gate, w->product_id, w->deadline_us, &w->settings); break;
    case CLOSE: w->in_time = gate_close(w->gate, w->product_id, w->deadline_us); break;
    case SWITCH:
        w->in_time = gate_switch(w->gate, &w->new_settings, w->deadline_us, &(struct settings){0});
        break;
    }
    w->ended_us = monotonic_us();
    atomic_store(&w->done, true);
    return NULL;
}

static void begin(struct waiter *w, struct gate *gate, enum action action, int64_t product_id,
                  int64_t deadline_us)
{
    w->gate = gate;
    w->action = action;
    w->product_id = product_id;
    w->deadline_us = deadline_us;
    atomic_store(&w->started, false);
    atomic_store(&w->done, false);
    assert_int_equal(pthread_create(&w->thread, NULL, wait_at_gate, w), 0);
    while (!atomic_load(&w->started))
        sleep_us(50);
}

static void assert_waits(struct waiter *w)
{
    sleep_us(SHORT_US / 3);
    assert_false(atomic_load(&w->done));
}

static bool end(struct waiter *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    return w->in_time;
}

static void assert_ended_at_deadline(struct waiter *w)
{
    assert_false(end(w));
    assert_true(w->ended_us >= w->deadline_us && w->ended_us < w->deadline_us + A_LOT_LATER_US);
}

/* ---- orders and settings ---------------------------------------------------------------------------------- */

static void test_orders_get_the_settings(void **state)
{
    (void)state;
    struct gate *gate = new_gate(7);
    struct settings settings;
    assert_true(gate_enter(gate, 1, soon(), &settings));
    assert_ptr_equal(settings.strategy, &strategies[0]);
    assert_true(settings.lock_ttl_ms == 1 && settings.lock_wait_ms == 2 && settings.think_ms == 7);
    assert_true(gate_settings(gate).think_ms == 7);
    gate_leave(gate, 1);
    /* Nothing is closed, so even an order without time comes in. */
    assert_true(gate_enter(gate, 1, 0, &settings));
    gate_leave(gate, 1);
    gate_free(gate);
    gate_free(NULL);
}

static void test_orders_do_not_wait_for_each_other(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings;
    for (int i = 0; i < 100; i++)
        assert_true(gate_enter(gate, i % 3, 0, &settings));
    for (int i = 0; i < 100; i++)
        gate_leave(gate, i % 3);
    gate_free(gate);
}

/* ---- reset ------------------------------------------------------------------------------------------------ */

static void test_a_reset_waits_for_the_running_orders(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings;
    assert_true(gate_enter(gate, 1, soon(), &settings));
    assert_true(gate_enter(gate, 1, soon(), &settings));
    struct waiter reset;
    begin(&reset, gate, CLOSE, 1, soon());
    assert_waits(&reset);
    gate_leave(gate, 1);
    assert_waits(&reset);
    gate_leave(gate, 1);
    assert_true(end(&reset));
    gate_open(gate, 1);
    gate_free(gate);
}

static void test_a_reset_keeps_new_orders_out(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings;
    assert_true(gate_close(gate, 1, soon()));

    struct waiter late, patient;
    begin(&late, gate, ENTER, 1, monotonic_us() + SHORT_US);
    begin(&patient, gate, ENTER, 1, soon());
    assert_ended_at_deadline(&late);
    assert_false(gate_enter(gate, 1, 0, &settings));
    assert_true(gate_enter(gate, 2, 0, &settings)); /* another product's go on */
    gate_leave(gate, 2);
    assert_waits(&patient);
    gate_open(gate, 1);
    assert_true(end(&patient));
    gate_leave(gate, 1);
    gate_free(gate);
}

/* Orders that come while a reset waits do not overtake it, or it would wait for ever under load. */
static void test_a_waiting_reset_is_not_starved(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings;
    assert_true(gate_enter(gate, 1, soon(), &settings));
    struct waiter reset, order;
    begin(&reset, gate, CLOSE, 1, soon());
    assert_waits(&reset);
    begin(&order, gate, ENTER, 1, soon());
    assert_waits(&order);
    gate_leave(gate, 1);
    assert_true(end(&reset));
    assert_waits(&order);
    gate_open(gate, 1);
    assert_true(end(&order));
    gate_leave(gate, 1);
    gate_free(gate);
}

/* A reset whose deadline comes keeps nothing out any more, and wakes those it kept waiting. */
static void test_a_reset_that_comes_too_late(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings;
    assert_true(gate_enter(gate, 1, soon(), &settings));
    struct waiter reset, order;
    begin(&reset, gate, CLOSE, 1, monotonic_us() + SHORT_US);
    sleep_us(SHORT_US / 3);
    begin(&order, gate, ENTER, 1, soon());
    assert_ended_at_deadline(&reset);
    assert_true(end(&order));
    gate_leave(gate, 1);
    gate_leave(gate, 1);
    assert_true(gate_close(gate, 1, 0)); /* nobody is in: no time is needed */
    gate_open(gate, 1);
    gate_free(gate);
}

static void test_one_reset_after_another(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    assert_true(gate_close(gate, 1, soon()));
    struct waiter second, third;
    begin(&second, gate, CLOSE, 1, soon());
    begin(&third, gate, CLOSE, 1, monotonic_us() + SHORT_US);
    assert_ended_at_deadline(&third);
    assert_waits(&second);
    gate_open(gate, 1);
    assert_true(end(&second));
    struct settings settings;
    assert_false(gate_enter(gate, 1, 0, &settings)); /* the second one's turn */
    gate_open(gate, 1);
    assert_true(gate_enter(gate, 1, 0, &settings));
    gate_leave(gate, 1);
    gate_free(gate);
}

static void test_any_product_id(void **state)
{
    (void)state;
    static const int64_t ids[] = {0, 1, 255, 256, 257, INT64_MAX, INT64_MAX - 1, -1, INT64_MIN};
    struct gate *gate = new_gate(0);
    for (size_t i = 0; i < COUNT(ids); i++) {
        struct settings settings;
        assert_true(gate_close(gate, ids[i], 0));
        assert_false(gate_enter(gate, ids[i], 0, &settings));
        gate_open(gate, ids[i]);
        assert_true(gate_enter(gate, ids[i], 0, &settings));
        assert_false(gate_close(gate, ids[i], 0));
        gate_leave(gate, ids[i]);
    }
    gate_free(gate);
}

/* ---- switch ----------------------------------------------------------------------------------------------- */

static void test_a_switch_without_orders(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    for (int64_t i = 1; i <= 5; i++) {
        struct settings settings = settings_of(i), seen;
        assert_true(gate_switch(gate, &settings, 0, &(struct settings){0}));
        assert_true(gate_settings(gate).think_ms == i);
        assert_true(gate_enter(gate, 1, 0, &seen));
        assert_ptr_equal(seen.strategy, &strategies[1]);
        assert_true(seen.think_ms == i);
        gate_leave(gate, 1);
    }
    gate_free(gate);
}

static void test_a_switch_waits_for_the_running_orders(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings;
    assert_true(gate_enter(gate, 1, soon(), &settings));
    assert_true(gate_enter(gate, 2, soon(), &settings)); /* of any product */
    struct waiter change = {.new_settings = settings_of(5)};
    begin(&change, gate, SWITCH, 0, soon());
    assert_waits(&change);
    gate_leave(gate, 1);
    assert_waits(&change);
    assert_true(gate_settings(gate).think_ms == 0);
    gate_leave(gate, 2);
    assert_true(end(&change));
    assert_true(gate_settings(gate).think_ms == 5);
    gate_free(gate);
}

/* Orders under the old and under the new strategy never run side by side. */
static void test_a_switch_keeps_new_orders_out(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings;
    assert_true(gate_enter(gate, 1, soon(), &settings));
    struct waiter change = {.new_settings = settings_of(5)}, late, patient;
    begin(&change, gate, SWITCH, 0, soon());
    assert_waits(&change);
    begin(&late, gate, ENTER, 2, monotonic_us() + SHORT_US);
    begin(&patient, gate, ENTER, 3, soon());
    assert_ended_at_deadline(&late);
    assert_waits(&patient);
    gate_leave(gate, 1);
    assert_true(end(&change));
    assert_true(end(&patient));
    assert_true(patient.settings.think_ms == 5);
    gate_leave(gate, 3);
    gate_free(gate);
}

/* A switch whose deadline comes changes nothing, and wakes those it kept waiting. */
static void test_a_switch_that_comes_too_late(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings;
    assert_true(gate_enter(gate, 1, soon(), &settings));
    struct waiter change = {.new_settings = settings_of(5)}, order;
    begin(&change, gate, SWITCH, 0, monotonic_us() + SHORT_US);
    sleep_us(SHORT_US / 3);
    begin(&order, gate, ENTER, 1, soon());
    assert_ended_at_deadline(&change);
    assert_true(end(&order));
    assert_true(order.settings.think_ms == 0);
    assert_true(gate_settings(gate).think_ms == 0);
    gate_leave(gate, 1);

    /* The first order is still known to run: the next switch waits for it, too. */
    struct waiter next = {.new_settings = settings_of(6)};
    begin(&next, gate, SWITCH, 0, soon());
    assert_waits(&next);
    gate_leave(gate, 1);
    assert_true(end(&next));
    assert_true(gate_settings(gate).think_ms == 6);
    gate_free(gate);
}

static void test_a_switch_does_not_wait_for_a_reset(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings = settings_of(5);
    assert_true(gate_close(gate, 1, soon()));
    assert_true(gate_switch(gate, &settings, 0, &(struct settings){0}));
    gate_open(gate, 1);
    gate_free(gate);
}

/* Two switches and a reset wait for one order: all get their turn when it ends, and one of the settings stands. */
static void test_changes_at_once(void **state)
{
    (void)state;
    enum { ROUNDS = 200 };
    for (int round = 0; round < ROUNDS; round++) {
        struct gate *gate = new_gate(0);
        struct settings settings;
        assert_true(gate_enter(gate, 1, soon(), &settings));
        struct waiter first = {.new_settings = settings_of(1)}, second = {.new_settings = settings_of(2)},
                      reset, order;
        begin(&first, gate, SWITCH, 0, soon());
        begin(&second, gate, SWITCH, 0, soon());
        begin(&reset, gate, CLOSE, 1, soon());
        sleep_us(1000);
        gate_leave(gate, 1);
        begin(&order, gate, ENTER, 2, soon());
        assert_true(end(&order));
        gate_leave(gate, 2);
        assert_true(end(&first));
        assert_true(end(&second));
        assert_true(end(&reset));
        gate_open(gate, 1);
        int64_t stands = gate_settings(gate).think_ms;
        assert_true(stands == 1 || stands == 2);
        gate_free(gate);
    }
}

/* ---- everything at once ----------------------------------------------------------------------------------- */

enum { ORDER_THREADS = 6, PRODUCTS = 3, RUN_US = 400000 };

static struct gate *busy;
static atomic_bool over;
static atomic_int in_product[PRODUCTS], being_reset[PRODUCTS];
static atomic_int met, orders, resets, switches, late, stale;

static void *place_orders(void *arg)
{
    unsigned dice = (unsigned)(uintptr_t)arg;
    while (!atomic_load(&over)) {
        int64_t product = (dice = dice * 1103515245u + 12345u) / 65536u % PRODUCTS;
        struct settings settings;
        if (!gate_enter(busy, product, soon(), &settings)) {
            atomic_fetch_add(&late, 1);
            continue;
        }
        atomic_fetch_add(&in_product[product], 1);
        if (atomic_load(&being_reset[product]))
            atomic_fetch_add(&met, 1);
        if (dice % 4 == 0)
            sleep_us(100);
        atomic_fetch_sub(&in_product[product], 1);
        if (gate_settings(busy).think_ms != settings.think_ms) /* switched while this one runs */
            atomic_fetch_add(&stale, 1);
        gate_leave(busy, product);
        atomic_fetch_add(&orders, 1);
    }
    return NULL;
}

static void *reset_products(void *arg)
{
    for (int64_t i = (int64_t)(uintptr_t)arg; !atomic_load(&over); i++) {
        int64_t product = i % PRODUCTS;
        if (!gate_close(busy, product, soon())) {
            atomic_fetch_add(&late, 1);
            continue;
        }
        if (atomic_fetch_add(&being_reset[product], 1) > 0 || atomic_load(&in_product[product]) > 0)
            atomic_fetch_add(&met, 1);
        sleep_us(50);
        if (atomic_load(&in_product[product]) > 0)
            atomic_fetch_add(&met, 1);
        atomic_fetch_sub(&being_reset[product], 1);
        gate_open(busy, product);
        atomic_fetch_add(&resets, 1);
        sleep_us(300);
    }
    return NULL;
}

static void *switch_settings(void *unused)
{
    (void)unused;
    for (int64_t i = 1; !atomic_load(&over); i++) {
        struct settings settings = settings_of(i);
        if (!gate_switch(busy, &settings, soon(), &(struct settings){0}))
            atomic_fetch_add(&late, 1);
        atomic_fetch_add(&switches, 1);
        sleep_us(200);
    }
    return NULL;
}

static void test_everything_at_once(void **state)
{
    (void)state;
    busy = new_gate(0);
    pthread_t threads[ORDER_THREADS + 3];
    for (uintptr_t i = 0; i < ORDER_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, place_orders, (void *)(i + 1)), 0);
    for (uintptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[ORDER_THREADS + i], NULL, reset_products, (void *)i), 0);
    assert_int_equal(pthread_create(&threads[ORDER_THREADS + 2], NULL, switch_settings, NULL), 0);
    sleep_us(RUN_US);
    atomic_store(&over, true);
    for (int i = 0; i < ORDER_THREADS + 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&met), 0);
    assert_int_equal(atomic_load(&late), 0);
    assert_int_equal(atomic_load(&stale), 0);
    assert_true(atomic_load(&orders) > 100 && atomic_load(&resets) > 10 && atomic_load(&switches) > 10);
    gate_free(busy);
}

/* ---- settings of a product's own -------------------------------------------------------------------------- */

static struct settings set_own(struct gate *gate, int64_t product_id, int64_t think_ms)
{
    struct settings changes = settings_of(think_ms), settings;
    assert_true(gate_close(gate, product_id, soon()));
    assert_true(gate_set_own(gate, product_id, &changes, &settings));
    gate_open(gate, product_id);
    return settings;
}

static void test_a_product_has_settings_of_its_own(void **state)
{
    (void)state;
    struct gate *gate = new_gate(7);
    struct settings settings, changes = {.lock_ttl_ms = -1, .lock_wait_ms = -1, .think_ms = 9};
    assert_true(gate_settings_of(gate, 5).think_ms == 7);
    assert_true(set_own(gate, 5, 3).think_ms == 3);
    assert_true(gate_set_own(gate, 6, &changes, &settings)); /* nothing else is named: as the common ones */
    assert_ptr_equal(settings.strategy, &strategies[0]);
    assert_true(settings.think_ms == 9 && settings.lock_wait_ms == 2);
    assert_true(gate_enter(gate, 5, soon(), &settings));
    assert_ptr_equal(settings.strategy, &strategies[1]);
    gate_leave(gate, 5);
    assert_true(gate_settings_of(gate, 5).think_ms == 3 && gate_settings(gate).think_ms == 7);
    gate_free(gate);
}

static void test_a_switch_concerns_no_product_of_its_own(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings, common = settings_of(8);
    struct waiter w = {.new_settings = settings_of(9)};
    set_own(gate, 5, 3);
    assert_true(gate_enter(gate, 5, soon(), &settings));
    assert_true(gate_switch(gate, &common, 0, &settings)); /* does not wait for that order */
    assert_true(gate_enter(gate, 1, soon(), &settings));
    begin(&w, gate, SWITCH, 0, soon());
    assert_waits(&w); /* for this one */
    assert_true(gate_enter(gate, 5, 0, &settings));
    assert_true(settings.think_ms == 3);
    gate_leave(gate, 5);
    gate_leave(gate, 5);
    assert_waits(&w);
    gate_leave(gate, 1);
    assert_true(end(&w));
    gate_free(gate);
}

static void test_there_is_a_bound_to_them(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    struct settings settings, changes = settings_of(1);
    for (int64_t id = 1; id <= OWN_SETTINGS_MAX; id++)
        assert_true(gate_set_own(gate, id, &changes, &settings));
    assert_true(gate_set_own(gate, 1, &changes, &settings));
    assert_false(gate_set_own(gate, OWN_SETTINGS_MAX + 1, &changes, &settings));
    gate_free(gate);
}

static void test_when_a_sale_began(void **state)
{
    (void)state;
    struct gate *gate = new_gate(0);
    assert_true(gate_sale_us(gate, 1) == 0);
    int64_t before_us = monotonic_us();
    gate_begin_sale(gate, 1);
    assert_true(gate_sale_us(gate, 1) >= before_us && gate_sale_us(gate, 2) == 0);
    gate_free(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_may_not_wait_is_kept_out),
        cmocka_unit_test(test_orders_get_the_settings),
        cmocka_unit_test(test_orders_do_not_wait_for_each_other),
        cmocka_unit_test(test_a_reset_waits_for_the_running_orders),
        cmocka_unit_test(test_a_reset_keeps_new_orders_out),
        cmocka_unit_test(test_a_waiting_reset_is_not_starved),
        cmocka_unit_test(test_a_reset_that_comes_too_late),
        cmocka_unit_test(test_one_reset_after_another),
        cmocka_unit_test(test_any_product_id),
        cmocka_unit_test(test_a_switch_without_orders),
        cmocka_unit_test(test_a_switch_waits_for_the_running_orders),
        cmocka_unit_test(test_a_switch_keeps_new_orders_out),
        cmocka_unit_test(test_a_switch_that_comes_too_late),
        cmocka_unit_test(test_a_switch_does_not_wait_for_a_reset),
        cmocka_unit_test(test_changes_at_once),
        cmocka_unit_test(test_everything_at_once),
        cmocka_unit_test(test_a_product_has_settings_of_its_own),
        cmocka_unit_test(test_a_switch_concerns_no_product_of_its_own),
        cmocka_unit_test(test_there_is_a_bound_to_them),
        cmocka_unit_test(test_when_a_sale_began),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
