/* The bounded queue: how much it takes, in which order it gives, how it ends, and all that with many threads. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void *item(uintptr_t number)
{
    return (void *)(number + 1); /* NULL is the end */
}

static void test_bound(void **state)
{
    for (size_t bound = 1; bound <= 5; bound++) {
        struct queue *queue = queue_new(bound);
        assert_non_null(queue);
        for (uintptr_t i = 0; i < bound; i++) {
            assert_int_equal(queue_depth(queue), i);
            assert_true(queue_push(queue, item(i)));
        }
        assert_int_equal(queue_depth(queue), bound);
        assert_false(queue_push(queue, item(99)));
        assert_int_equal(queue_depth(queue), bound);
        assert_ptr_equal(queue_pop(queue), item(0)); /* one goes, one fits */
        assert_true(queue_push(queue, item(bound)));
        assert_false(queue_push(queue, item(99)));
        queue_free(queue);
    }
}

/* In at one end, out at the other, also where the ring wraps, at every fill and every position. */
static void test_order(void **state)
{
    enum { BOUND = 7 };
    struct queue *queue = queue_new(BOUND);
    uintptr_t in = 0, out = 0;
    for (int fill = 1; fill <= BOUND; fill++)
        for (int round = 0; round < 2 * BOUND; round++) {
            for (int i = 0; i < fill; i++)
                assert_true(queue_push(queue, item(in++)));
            for (int i = 0; i < fill; i++)
                assert_ptr_equal(queue_pop(queue), item(out++));
        }
    assert_int_equal(queue_depth(queue), 0);
    queue_free(queue);
}

/* One owner has three items in the queue; each that comes later waits behind one of them at most, and none is passed for ever. */
static void test_owners_are_served_in_turn(void **state)
{
    struct queue *queue = queue_new(16);
    for (unsigned i = 0; i < 3; i++)
        assert_true(queue_push_turn(queue, item(i), i));
    assert_true(queue_push_turn(queue, item(10), 0));
    assert_true(queue_push_turn(queue, item(20), 0));
    assert_true(queue_push_turn(queue, item(21), 1));
    assert_ptr_equal(queue_pop(queue), item(0));
    assert_true(queue_push_turn(queue, item(30), 0)); /* in the round after that of item 0 */
    assert_ptr_equal(queue_pop(queue), item(10));
    assert_ptr_equal(queue_pop(queue), item(20));
    assert_ptr_equal(queue_pop(queue), item(1));
    assert_ptr_equal(queue_pop(queue), item(21));
    assert_ptr_equal(queue_pop(queue), item(30));
    for (uintptr_t i = 40; i < 44; i++) { /* a stream of others, one at a time: item 2 has its turn */
        assert_true(queue_push_turn(queue, item(i), 0));
        assert_ptr_equal(queue_pop(queue), i == 40 ? item(2) : item(i - 1));
    }
    assert_ptr_equal(queue_pop(queue), item(43));
    assert_int_equal(queue_depth(queue), 0);
    queue_free(queue);
}

/* Items pushed first pass all others, in order, and have room where the others have none; the others' turns stay. */
static void test_first(void **state)
{
    struct queue *queue = queue_new(3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(queue_push_turn(queue, item(i), i));
    assert_false(queue_push(queue, item(99)));
    for (unsigned i = 0; i < QUEUE_RESERVED; i++)
        assert_true(queue_push_first(queue, item(100 + i)));
    assert_false(queue_push_first(queue, item(99)));
    for (unsigned i = 0; i < QUEUE_RESERVED; i++)
        assert_ptr_equal(queue_pop(queue), item(100 + i));
    assert_ptr_equal(queue_pop(queue), item(0));
    assert_true(queue_push_first(queue, item(200)));
    assert_ptr_equal(queue_pop(queue), item(200));
    assert_true(queue_push_turn(queue, item(3), 0)); /* in the round of item 1, and behind it */
    assert_ptr_equal(queue_pop(queue), item(1));
    assert_ptr_equal(queue_pop(queue), item(3));
    assert_ptr_equal(queue_pop(queue), item(2));
    queue_close(queue);
    assert_false(queue_push_first(queue, item(99)));
    queue_free(queue);
}

static void test_close(void **state)
{
    struct queue *queue = queue_new(3);
    assert_true(queue_push(queue, item(0)));
    assert_true(queue_push(queue, item(1)));
    queue_close(queue);
    assert_false(queue_push(queue, item(2))); /* closed, though there is room */
    assert_ptr_equal(queue_pop(queue), item(0));
    assert_ptr_equal(queue_pop(queue), item(1));
    assert_null(queue_pop(queue));
    assert_null(queue_pop(queue)); /* and again, for every thread that waits */
    queue_close(queue);
    queue_free(queue);
    queue_free(NULL);
}

struct popper {
    struct queue *queue;
    atomic_int ended, popped;
};

static void *pop_until_the_end(void *arg)
{
    struct popper *popper = arg;
    while (queue_pop(popper->queue))
        atomic_fetch_add(&popper->popped, 1);
    atomic_fetch_add(&popper->ended, 1);
    return NULL;
}

enum { POPPERS = 6 };

/* Threads that wait in an empty queue: an item wakes one of them, closing wakes all. */
static void test_waiting(void **state)
{
    struct popper popper = {.queue = queue_new(4)};
    pthread_t threads[POPPERS];
    for (int i = 0; i < POPPERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pop_until_the_end, &popper), 0);
    sleep_us(20000);
    assert_int_equal(atomic_load(&popper.ended), 0);
    assert_int_equal(atomic_load(&popper.popped), 0);

    assert_true(queue_push(popper.queue, item(0)));
    int64_t until_us = monotonic_us() + PATIENCE_US;
    while (atomic_load(&popper.popped) < 1 && monotonic_us() < until_us)
        sleep_us(200);
    assert_int_equal(atomic_load(&popper.popped), 1);
    assert_int_equal(atomic_load(&popper.ended), 0);

    queue_close(popper.queue);
    for (int i = 0; i < POPPERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&popper.ended), POPPERS);
    queue_free(popper.queue);
}

/* ---- many producers, many consumers ---------------------------------------------------------------------- */

enum { PRODUCERS = 5, CONSUMERS = 5, EACH = 4000, BOUND = 16 };

static struct queue *busy;
static atomic_int seen[PRODUCERS * EACH];
static atomic_int refused, too_deep, disordered;

static void *produce(void *arg)
{
    uintptr_t first = (uintptr_t)arg * EACH;
    for (uintptr_t i = 0; i < EACH;) {
        if (queue_push(busy, item(first + i))) {
            i++;
        } else {
            atomic_fetch_add(&refused, 1);
            sleep_us(50);
        }
    }
    return NULL;
}

/* Each producer's items come to one consumer in the order of their making. */
static void *consume(void *unused)
{
    (void)unused;
    int64_t last[PRODUCERS];
    memset(last, -1, sizeof last);
    void *got;
    while ((got = queue_pop(busy)) != NULL) {
        uintptr_t number = (uintptr_t)got - 1;
        atomic_fetch_add(&seen[number], 1);
        if (queue_depth(busy) > BOUND)
            atomic_fetch_add(&too_deep, 1);
        if ((int64_t)(number % EACH) <= last[number / EACH])
            atomic_fetch_add(&disordered, 1);
        last[number / EACH] = (int64_t)(number % EACH);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    busy = queue_new(BOUND);
    pthread_t producers[PRODUCERS], consumers[CONSUMERS];
    for (int i = 0; i < CONSUMERS; i++)
        assert_int_equal(pthread_create(&consumers[i], NULL, consume, NULL), 0);
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&producers[i], NULL, produce, (void *)i), 0);
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_join(producers[i], NULL), 0);
    queue_close(busy);
    for (int i = 0; i < CONSUMERS; i++)
        assert_int_equal(pthread_join(consumers[i], NULL), 0);
    for (int i = 0; i < PRODUCERS * EACH; i++)
        assert_int_equal(atomic_load(&seen[i]), 1); /* none lost, none twice */
    assert_int_equal(atomic_load(&too_deep), 0);
    assert_int_equal(atomic_load(&disordered), 0);
    queue_free(busy);
}

/* A deadline ends the wait, and neither the queue nor what is in it. */
static void test_a_deadline(void **state)
{
    struct queue *queue = queue_new(1);
    int64_t until_us = monotonic_us() + 20000;
    assert_null(queue_pop_until(queue, until_us));
    assert_true(monotonic_us() >= until_us);
    assert_true(queue_push(queue, item(1)));
    assert_ptr_equal(queue_pop_until(queue, until_us), item(1)); /* there already, however late it is */
    queue_close(queue);
    assert_null(queue_pop_until(queue, INT64_MAX));
    queue_free(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_owners_are_served_in_turn),
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_a_deadline),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
