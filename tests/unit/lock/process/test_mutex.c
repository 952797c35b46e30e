/* The process's mutexes: the grant, the deadline, and which mutex a key locks. That they exclude, wake and count is for the
 * contract tests, which every lock has to pass. */
#include "tests/unit/unit.h"

#include "base/clock.h"

#include "lock/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const struct lock_driver *const mutexes[] = {&process_mutex, &process_mutex_per_product,
                                                    &process_mutex_wrong_object, &process_mutex_reentrant};

enum { SHORT_US = 60000 };

static struct lock *open_lock(const struct lock_driver *driver)
{
    struct lock *lock = NULL;
    assert_int_equal(lock_open(driver, &lock), LOCK_OK);
    assert_ptr_equal(lock->driver, driver);
    return lock;
}

/* A handle that holds KEY. */
static struct lock *holder_of(const struct lock_driver *driver, const char *key, struct lock_grant *ret_grant)
{
    struct lock *lock = open_lock(driver);
    assert_int_equal(lock_acquire(lock, key, 0, ret_grant), LOCK_OK);
    return lock;
}

static void release_and_close(struct lock *lock, struct lock_grant *grant)
{
    assert_int_equal(lock_release(lock, grant), LOCK_OK);
    lock_close(lock);
}

/* Another thread that asks for the lock, since a thread's own second try may be special. */
struct asking {
    struct observer observer;
    struct lock *lock;
    const char *key;
    int64_t deadline_us;
    enum lock_status status;
    int waits, other_steps;
};

static void count_step(struct observer *self, enum step step, int64_t value)
{
    struct asking *asking = (struct asking *)self;
    (void)value;
    (*(step == STEP_WAIT ? &asking->waits : &asking->other_steps))++;
}

static void *ask(void *arg)
{
    struct asking *asking = arg;
    struct lock_grant grant;
    asking->status = lock_acquire(asking->lock, asking->key, asking->deadline_us, &grant);
    if (asking->status == LOCK_OK)
        lock_release(asking->lock, &grant);
    return NULL;
}

/* What another thread with its own handle gets that asks for KEY until DEADLINE. */
static struct asking ask_elsewhere(const struct lock_driver *driver, const char *key, int64_t deadline_us)
{
    struct asking asking = {
        .observer.on_step = count_step, .lock = open_lock(driver), .key = key, .deadline_us = deadline_us};
    pthread_t thread;
    asking.lock->observer = &asking.observer;
    assert_int_equal(pthread_create(&thread, NULL, ask, &asking), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    lock_close(asking.lock);
    return asking;
}

static void test_grant(void **state)
{
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        struct lock_grant grant;
        char key[LOCK_NAME_MAX + 1];
        memset(key, 'k', LOCK_NAME_MAX);
        key[LOCK_NAME_MAX] = '\0';
        memset(&grant, 0xee, sizeof grant);
        struct lock *lock = holder_of(mutexes[i], key, &grant);
        assert_string_equal(grant.key, key);
        assert_true(grant.fence == 0);
        assert_true(grant.lease_end_us == INT64_MAX);
        assert_int_equal(lock_still_held(lock, &grant), LOCK_OK);
        release_and_close(lock, &grant);
    }
}

/* A wait lasts until its deadline, never less, and is told once; one that has passed means one try. */
static void test_deadlines(void **state)
{
    static const int64_t from_now_us[] = {SHORT_US, SHORT_US / 3, 0, -1, -1000001, INT64_MIN};
    for (size_t i = 0; i < COUNT(mutexes); i++)
        for (size_t j = 0; j < COUNT(from_now_us); j++) {
            int64_t deadline_us = from_now_us[j] < 0 ? from_now_us[j] : monotonic_us() + from_now_us[j];
            bool excludes = mutexes[i] != &process_mutex_wrong_object;
            struct lock_grant grant;
            struct lock *lock = holder_of(mutexes[i], "product:1", &grant);
            struct asking asking = ask_elsewhere(mutexes[i], "product:1", deadline_us);
            assert_int_equal(asking.status, excludes ? LOCK_TIMED_OUT : LOCK_OK);
            assert_true(!excludes || monotonic_us() >= deadline_us);
            assert_int_equal(asking.waits, excludes);
            release_and_close(lock, &grant);
            asking = ask_elsewhere(mutexes[i], "product:1", deadline_us);
            assert_int_equal(asking.status, LOCK_OK);
            assert_int_equal(asking.waits + asking.other_steps, 0);
        }
}

static void test_one_mutex_for_all_products(void **state)
{
    static const struct lock_driver *const coarse[] = {&process_mutex, &process_mutex_reentrant};
    for (size_t i = 0; i < COUNT(coarse); i++) {
        struct lock_grant grant;
        struct lock *lock = holder_of(coarse[i], "product:1", &grant);
        assert_int_equal(ask_elsewhere(coarse[i], "product:2", 0).status, LOCK_TIMED_OUT);
        release_and_close(lock, &grant);
    }
}

/* Stripes: the same product always excludes, of other products only those few that share its stripe. */
static void test_a_mutex_for_each_product(void **state)
{
    enum { PRODUCTS = 2000 };
    struct lock *other = open_lock(&process_mutex_per_product);
    for (int product = 1; product <= 5; product++) {
        char key[40];
        struct lock_grant grant, unused;
        int shared = 0;
        snprintf(key, sizeof key, "product:%d", product);
        struct lock *lock = holder_of(&process_mutex_per_product, key, &grant);
        for (int neighbour = 1; neighbour <= PRODUCTS; neighbour++) {
            snprintf(key, sizeof key, "product:%d", neighbour);
            enum lock_status status = lock_acquire(other, key, 0, &unused);
            assert_int_equal(neighbour == product ? LOCK_TIMED_OUT : status, status);
            shared += status == LOCK_TIMED_OUT;
            if (status == LOCK_OK)
                assert_int_equal(lock_release(other, &unused), LOCK_OK);
        }
        assert_true(shared < PRODUCTS / 20); /* far from one mutex for all */
        release_and_close(lock, &grant);
    }
    lock_close(other);
}

/* The four are four: none is locked by locking another. */
static void test_mutexes_are_separate(void **state)
{
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        struct lock_grant grant;
        struct lock *lock = holder_of(mutexes[i], "product:1", &grant);
        for (size_t j = 0; j < COUNT(mutexes); j++)
            if (j != i)
                assert_int_equal(ask_elsewhere(mutexes[j], "product:1", 0).status, LOCK_OK);
        release_and_close(lock, &grant);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grant),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_one_mutex_for_all_products),
        cmocka_unit_test(test_a_mutex_for_each_product),
        cmocka_unit_test(test_mutexes_are_separate),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
