/* The process's mutexes against the contract of lock.h: each of the four as it declares itself. */
#include "base/clock.h"
#include "tests/unit/unit.h"

#include "lock/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static const struct lock_driver *const mutexes[] = {&process_mutex, &process_mutex_per_product,
                                                    &process_mutex_wrong_object, &process_mutex_reentrant};

enum { SHORT_US = 60000, A_LOT_LATER_US = 20 * 1000 * 1000 };

static bool excludes(const struct lock_driver *driver)
{
    return driver != &process_mutex_wrong_object;
}

static struct lock *open_lock(const struct lock_driver *driver)
{
    struct lock *lock = NULL;
    assert_int_equal(driver->open(driver, &lock), LOCK_OK);
    assert_non_null(lock);
    assert_ptr_equal(lock->driver, driver);
    return lock;
}

static enum lock_status acquire_within(struct lock *lock, const char *key, int64_t us,
                                       struct lock_grant *ret_grant)
{
    return lock->driver->acquire(lock, key, monotonic_us() + us, ret_grant);
}

/* ---- another thread that asks for the lock, since a thread's own second try may be special ----------------- */

struct asking {
    struct lock *lock;
    const char *key;
    int64_t deadline_us;
    struct observer observer;
    atomic_int waits, other_steps;
    atomic_bool asks;
    /* out */
    enum lock_status status;
    struct lock_grant grant;
    bool kept_key;
    int64_t ended_us;
};

static void count_step(struct observer *self, enum step step, int64_t value)
{
    struct asking *asking = (struct asking *)((char *)self - offsetof(struct asking, observer));
    (void)value;
    atomic_fetch_add(step == STEP_WAIT ? &asking->waits : &asking->other_steps, 1);
}

static void *ask(void *arg)
{
    struct asking *asking = arg;
    asking->observer.on_step = count_step;
    asking->lock->observer = &asking->observer;
    atomic_store(&asking->asks, true);
    asking->status = asking->lock->driver->acquire(asking->lock, asking->key, asking->deadline_us,
                                                   &asking->grant);
    asking->ended_us = monotonic_us();
    if (asking->status == LOCK_OK) {
        asking->kept_key = strcmp(asking->grant.key, asking->key) == 0;
        asking->lock->driver->release(asking->lock, &asking->grant);
    }
    asking->lock->observer = NULL;
    return NULL;
}

/* What another thread with a handle of its own hears that asks for KEY until DEADLINE, and lets go again. */
static enum lock_status status_elsewhere(const struct lock_driver *driver, const char *key,
                                         int64_t deadline_us, struct asking *ret_asking)
{
    struct asking *asking = ret_asking;
    *asking = (struct asking){.lock = open_lock(driver), .key = key, .deadline_us = deadline_us};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask, asking), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    driver->close(asking->lock);
    return asking->status;
}

static enum lock_status try_elsewhere(const struct lock_driver *driver, const char *key)
{
    struct asking asking;
    return status_elsewhere(driver, key, 0, &asking);
}

/* ---- the contract ---------------------------------------------------------------------------------------- */

static void test_grant(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        struct lock *lock = open_lock(mutexes[i]);
        struct lock_grant grant;
        char key[65];
        memset(key, 'k', 64);
        key[64] = '\0'; /* as long as a key may be */
        memset(&grant, 0xee, sizeof grant);
        assert_int_equal(acquire_within(lock, key, SHORT_US, &grant), LOCK_OK);
        assert_string_equal(grant.key, key);
        assert_true(grant.fence == 0);
        assert_true(grant.lease_end_us == INT64_MAX);
        assert_int_equal(lock->driver->still_held(lock, &grant), LOCK_OK);
        assert_int_equal(lock->driver->release(lock, &grant), LOCK_OK);
        lock->driver->close(lock);
        mutexes[i]->close(NULL);
    }
}

static void test_properties(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        const struct lock_properties *p = &mutexes[i]->properties;
        assert_null(mutexes[i]->server);
        assert_true(p->blocking && p->survives_crash);
        assert_false(p->leased || p->renewed || p->fenced);
        assert_int_equal(p->perils, 0);
        assert_true(p->reentrant == (mutexes[i] == &process_mutex_reentrant));
    }
}

static void test_a_held_lock_is_busy_elsewhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        struct lock *lock = open_lock(mutexes[i]);
        struct lock_grant grant;
        assert_int_equal(try_elsewhere(mutexes[i], "product:1"), LOCK_OK);
        assert_int_equal(acquire_within(lock, "product:1", SHORT_US, &grant), LOCK_OK);
        assert_int_equal(try_elsewhere(mutexes[i], "product:1"),
                         excludes(mutexes[i]) ? LOCK_TIMED_OUT : LOCK_OK);
        assert_int_equal(lock->driver->release(lock, &grant), LOCK_OK);
        assert_int_equal(try_elsewhere(mutexes[i], "product:1"), LOCK_OK);
        lock->driver->close(lock);
    }
}

/* A wait lasts until its deadline, never less, and is told once; what need not wait tells nothing. */
static void test_deadlines(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        struct lock *lock = open_lock(mutexes[i]);
        struct lock_grant grant;
        struct asking asking;
        assert_int_equal(status_elsewhere(mutexes[i], "product:1", monotonic_us() + SHORT_US, &asking),
                         LOCK_OK);
        assert_int_equal(atomic_load(&asking.waits), 0);

        assert_int_equal(acquire_within(lock, "product:1", SHORT_US, &grant), LOCK_OK);
        for (int64_t us = 0; us <= SHORT_US; us += SHORT_US / 3) {
            int64_t deadline_us = monotonic_us() + us;
            enum lock_status status = status_elsewhere(mutexes[i], "product:1", deadline_us, &asking);
            if (!excludes(mutexes[i])) {
                assert_int_equal(status, LOCK_OK);
                continue;
            }
            assert_int_equal(status, LOCK_TIMED_OUT);
            assert_true(asking.ended_us >= deadline_us);
            assert_true(asking.ended_us < deadline_us + A_LOT_LATER_US);
            assert_int_equal(atomic_load(&asking.waits), 1);
            assert_int_equal(atomic_load(&asking.other_steps), 0);
        }
        assert_int_equal(lock->driver->release(lock, &grant), LOCK_OK);
        lock->driver->close(lock);
    }
}

/* "A deadline in the past means one try." */
static void test_one_try(void **state)
{
    (void)state;
    static const int64_t past[] = {0, 1, 999999, 1000000, -1, -1000001, INT64_MIN};
    for (size_t i = 0; i < COUNT(mutexes); i++)
        for (size_t j = 0; j < COUNT(past); j++) {
            struct lock *lock = open_lock(mutexes[i]);
            struct lock_grant grant;
            struct asking asking;
            int64_t begun_us = monotonic_us();
            assert_int_equal(lock->driver->acquire(lock, "product:1", past[j], &grant), LOCK_OK);
            enum lock_status status = status_elsewhere(mutexes[i], "product:1", past[j], &asking);
            assert_int_equal(lock->driver->release(lock, &grant), LOCK_OK);
            if (status != (excludes(mutexes[i]) ? LOCK_TIMED_OUT : LOCK_OK))
                fail_msg("%s with the deadline %lld: %d", mutexes[i]->name, (long long)past[j], (int)status);
            assert_true(monotonic_us() < begun_us + A_LOT_LATER_US);
            lock->driver->close(lock);
        }
}

/* Who waits gets the lock when it is let go, long before its deadline. */
static void test_a_waiter_is_woken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        if (!excludes(mutexes[i]))
            continue;
        struct lock *lock = open_lock(mutexes[i]);
        struct lock_grant grant;
        assert_int_equal(acquire_within(lock, "product:1", SHORT_US, &grant), LOCK_OK);
        struct asking asking = {
            .lock = open_lock(mutexes[i]), .key = "product:1", .deadline_us = monotonic_us() + PATIENCE_US};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, ask, &asking), 0);
        while (atomic_load(&asking.waits) == 0 && monotonic_us() < asking.deadline_us)
            sleep_us(200);
        int64_t released_us = monotonic_us();
        assert_int_equal(lock->driver->release(lock, &grant), LOCK_OK);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(asking.status, LOCK_OK);
        assert_true(asking.ended_us >= released_us && asking.ended_us < released_us + A_LOT_LATER_US);
        assert_true(asking.kept_key);
        lock->driver->close(lock);
        asking.lock->driver->close(asking.lock);
    }
}

/* A thread that takes again what it holds: the reentrant one counts, the others run into their deadline. */
static void test_taking_it_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        struct lock *lock = open_lock(mutexes[i]);
        struct lock_grant outer, inner;
        assert_int_equal(acquire_within(lock, "product:1", SHORT_US, &outer), LOCK_OK);
        int64_t deadline_us = monotonic_us() + SHORT_US;
        enum lock_status status = lock->driver->acquire(lock, "product:1", deadline_us, &inner);
        if (mutexes[i]->properties.reentrant) {
            assert_int_equal(status, LOCK_OK);
            assert_int_equal(try_elsewhere(mutexes[i], "product:1"), LOCK_TIMED_OUT);
            assert_int_equal(lock->driver->release(lock, &inner), LOCK_OK);
            assert_int_equal(try_elsewhere(mutexes[i], "product:1"), LOCK_TIMED_OUT); /* held once still */
        } else {
            assert_int_equal(status, LOCK_TIMED_OUT);
            assert_true(monotonic_us() >= deadline_us);
        }
        assert_int_equal(lock->driver->release(lock, &outer), LOCK_OK);
        assert_int_equal(try_elsewhere(mutexes[i], "product:1"), LOCK_OK);
        lock->driver->close(lock);
    }
}

/* Only the holder's grant releases, and only once: a spent one does not free what another has taken meanwhile. */
static void test_a_spent_grant_frees_nobody_elses_lock(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        if (!excludes(mutexes[i]))
            continue;
        struct lock *first = open_lock(mutexes[i]), *second = open_lock(mutexes[i]);
        struct lock_grant grant, other;
        assert_int_equal(acquire_within(first, "product:1", SHORT_US, &grant), LOCK_OK);
        assert_int_equal(first->driver->release(first, &grant), LOCK_OK);
        assert_int_equal(acquire_within(second, "product:1", SHORT_US, &other), LOCK_OK);
        enum lock_status again = first->driver->release(first, &grant);
        enum lock_status elsewhere = try_elsewhere(mutexes[i], "product:1");
        if (again == LOCK_OK || elsewhere != LOCK_TIMED_OUT)
            fail_msg("%s: a grant that is spent released another's lock", mutexes[i]->name);
        assert_int_equal(second->driver->release(second, &other), LOCK_OK);
        first->driver->close(first);
        second->driver->close(second);
    }
}

/* ---- which mutex is locked -------------------------------------------------------------------------------- */

static void test_one_mutex_for_all_products(void **state)
{
    (void)state;
    static const struct lock_driver *const coarse[] = {&process_mutex, &process_mutex_reentrant};
    for (size_t i = 0; i < COUNT(coarse); i++) {
        struct lock *lock = open_lock(coarse[i]);
        struct lock_grant grant;
        assert_int_equal(acquire_within(lock, "product:1", SHORT_US, &grant), LOCK_OK);
        assert_int_equal(try_elsewhere(coarse[i], "product:2"), LOCK_TIMED_OUT);
        assert_int_equal(lock->driver->release(lock, &grant), LOCK_OK);
        lock->driver->close(lock);
    }
}

/* Stripes: the same product always excludes, of other products only those few that share its stripe. */
static void test_a_mutex_for_each_product(void **state)
{
    (void)state;
    enum { PRODUCTS = 2000 };
    struct lock *lock = open_lock(&process_mutex_per_product), *other = open_lock(&process_mutex_per_product);
    struct lock_grant grant, unused;
    char key[40];
    int most = 0;
    for (int product = 1; product <= 5; product++) {
        snprintf(key, sizeof key, "product:%d", product);
        assert_int_equal(acquire_within(lock, key, SHORT_US, &grant), LOCK_OK);
        int shared = 0;
        for (int neighbour = 1; neighbour <= PRODUCTS; neighbour++) {
            snprintf(key, sizeof key, "product:%d", neighbour);
            enum lock_status status = other->driver->acquire(other, key, 0, &unused);
            assert_int_equal(neighbour == product ? LOCK_TIMED_OUT : status, status);
            shared += status == LOCK_TIMED_OUT;
            if (status == LOCK_OK)
                assert_int_equal(other->driver->release(other, &unused), LOCK_OK);
        }
        most = shared > most ? shared : most;
        assert_int_equal(lock->driver->release(lock, &grant), LOCK_OK);
    }
    assert_true(most < PRODUCTS / 20); /* far from one mutex for all */
    lock->driver->close(lock);
    other->driver->close(other);
}

/* The four are four: none is locked by locking another. */
static void test_mutexes_are_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        struct lock *lock = open_lock(mutexes[i]);
        struct lock_grant grant;
        assert_int_equal(acquire_within(lock, "product:1", SHORT_US, &grant), LOCK_OK);
        for (size_t j = 0; j < COUNT(mutexes); j++)
            if (j != i)
                assert_int_equal(try_elsewhere(mutexes[j], "product:1"), LOCK_OK);
        assert_int_equal(lock->driver->release(lock, &grant), LOCK_OK);
        lock->driver->close(lock);
    }
}

/* ---- many threads ----------------------------------------------------------------------------------------- */

enum { THREADS = 8, EACH = 3000 };

static const struct lock_driver *contended;
static int64_t plain_counter; /* not atomic: the lock is what keeps it right */
static atomic_int inside, met, failures;

static void *count_up(void *unused)
{
    (void)unused;
    struct lock *lock = NULL;
    if (contended->open(contended, &lock) != LOCK_OK) {
        atomic_fetch_add(&failures, 1);
        return NULL;
    }
    for (int i = 0; i < EACH; i++) {
        struct lock_grant outer, inner;
        bool twice = contended->properties.reentrant;
        if (acquire_within(lock, "product:1", PATIENCE_US, &outer) != LOCK_OK ||
            (twice && acquire_within(lock, "product:1", PATIENCE_US, &inner) != LOCK_OK)) {
            atomic_fetch_add(&failures, 1);
            break;
        }
        if (atomic_fetch_add(&inside, 1) > 0)
            atomic_fetch_add(&met, 1);
        plain_counter++;
        atomic_fetch_sub(&inside, 1);
        if ((twice && lock->driver->release(lock, &inner) != LOCK_OK) ||
            lock->driver->release(lock, &outer) != LOCK_OK)
            atomic_fetch_add(&failures, 1);
    }
    lock->driver->close(lock);
    return NULL;
}

static void test_exclusion(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mutexes); i++) {
        if (!excludes(mutexes[i]))
            continue;
        contended = mutexes[i];
        plain_counter = 0;
        atomic_store(&met, 0);
        pthread_t threads[THREADS];
        for (int j = 0; j < THREADS; j++)
            assert_int_equal(pthread_create(&threads[j], NULL, count_up, NULL), 0);
        for (int j = 0; j < THREADS; j++)
            assert_int_equal(pthread_join(threads[j], NULL), 0);
        assert_int_equal(atomic_load(&failures), 0);
        assert_int_equal(atomic_load(&met), 0);
        assert_int_equal(plain_counter, THREADS * EACH);
    }
}

/* Two handles of the wrong object are inside at the same time: that is what is wrong with it. */
static void test_the_wrong_object_does_not_exclude(void **state)
{
    (void)state;
    struct lock *a = open_lock(&process_mutex_wrong_object), *b = open_lock(&process_mutex_wrong_object);
    struct lock_grant grant_a, grant_b;
    assert_int_equal(acquire_within(a, "product:1", SHORT_US, &grant_a), LOCK_OK);
    assert_int_equal(b->driver->acquire(b, "product:1", 0, &grant_b), LOCK_OK);
    assert_int_equal(a->driver->release(a, &grant_a), LOCK_OK);
    assert_int_equal(b->driver->release(b, &grant_b), LOCK_OK);
    a->driver->close(a);
    b->driver->close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grant),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_a_held_lock_is_busy_elsewhere),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_one_try),
        cmocka_unit_test(test_taking_it_twice),
        cmocka_unit_test(test_one_mutex_for_all_products),
        cmocka_unit_test(test_a_mutex_for_each_product),
        cmocka_unit_test(test_mutexes_are_apart),
        cmocka_unit_test(test_the_wrong_object_does_not_exclude),
        cmocka_unit_test(test_exclusion),
        cmocka_unit_test(test_a_waiter_is_woken),
        cmocka_unit_test(test_a_spent_grant_frees_nobody_elses_lock),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
