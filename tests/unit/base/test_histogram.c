/* The histogram: every duration falls into the bucket whose bounds enclose it, and buckets are narrow. */
#include "tests/unit/unit.h"

#include "base/histogram.h"

#include <pthread.h>

static int64_t lower_us(int bucket)
{
    return bucket == 0 ? 0 : histogram_upper_us(bucket - 1);
}

/* UPPER is the first duration above a bucket: so lower <= us < upper. The last bucket has no end. */
static void check(int64_t us)
{
    int bucket = histogram_bucket(us);
    if (bucket < 0 || bucket >= HISTOGRAM_BUCKETS)
        fail_msg("%lld us falls into bucket %d of %d", (long long)us, bucket, (int)HISTOGRAM_BUCKETS);
    if (us < lower_us(bucket) || (us >= histogram_upper_us(bucket) && bucket < HISTOGRAM_BUCKETS - 1))
        fail_msg("%lld us falls into bucket %d, from %lld to %lld", (long long)us, bucket,
                 (long long)lower_us(bucket), (long long)histogram_upper_us(bucket));
}

static void test_every_duration_up_to_a_second(void **state)
{
    int before = 0;
    for (int64_t us = 0; us <= 1000000; us++) {
        check(us);
        int bucket = histogram_bucket(us);
        if (bucket != before && bucket != before + 1)
            fail_msg("%lld us is in bucket %d, one less in %d", (long long)us, bucket, before);
        before = bucket;
    }
}

static void test_longer_durations(void **state)
{
    int before = 0;
    for (int64_t us = 1000000; us < INT64_MAX / 2; us += us / 1000 + 1) {
        check(us);
        assert_true(histogram_bucket(us) >= before);
        before = histogram_bucket(us);
    }
    for (int shift = 0; shift < 63; shift++)
        for (int64_t near = -1; near <= 1; near++)
            check(((int64_t)1 << shift) + near);
    assert_int_equal(histogram_bucket(INT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void test_bounds_grow_and_fit(void **state)
{
    for (int bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        int64_t lower = lower_us(bucket), upper = histogram_upper_us(bucket);
        assert_true(lower < upper);
        assert_int_equal(histogram_bucket(lower), bucket);
        assert_int_equal(histogram_bucket(upper - 1), bucket);
        if (bucket < HISTOGRAM_BUCKETS - 1)
            assert_int_equal(histogram_bucket(upper), bucket + 1);
        /* Known to an eighth: 12.5 % of the smallest duration in the bucket. Below 8 us, exactly. */
        assert_true(upper - lower <= (lower / HISTOGRAM_SUB ? lower / HISTOGRAM_SUB : 1));
    }
    /* Two minutes at least before the last bucket, where all that is longer ends up. */
    assert_true(histogram_upper_us(HISTOGRAM_BUCKETS - 2) > 120ll * 1000000);
}

static void test_a_clock_that_goes_back(void **state)
{
    assert_int_equal(histogram_bucket(-1), 0);
    assert_int_equal(histogram_bucket(INT64_MIN), 0);
    static struct histogram histogram;
    histogram_add(&histogram, -5);
    histogram_add(&histogram, 7);
    assert_true(atomic_load(&histogram.count) == 2);
    assert_true(atomic_load(&histogram.sum_us) == 7); /* nothing is ever taken away from the sum */
}

enum { THREADS = 4, EACH = 20000 };

static struct histogram shared;

static void *add_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < EACH; i++)
        histogram_add(&shared, i);
    return NULL;
}

static void test_threads_lose_nothing(void **state)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    unsigned long long in_buckets = 0;
    for (int bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        in_buckets += atomic_load(&shared.buckets[bucket]);
        int64_t first = lower_us(bucket), end = histogram_upper_us(bucket);
        int64_t expected = first >= EACH ? 0 : (end < EACH ? end : EACH) - first;
        assert_true(atomic_load(&shared.buckets[bucket]) == (unsigned long long)expected * THREADS);
    }
    assert_true(in_buckets == THREADS * EACH);
    assert_true(atomic_load(&shared.count) == THREADS * EACH);
    assert_true(atomic_load(&shared.sum_us) == (unsigned long long)THREADS * EACH * (EACH - 1) / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_duration_up_to_a_second), cmocka_unit_test(test_longer_durations),
        cmocka_unit_test(test_bounds_grow_and_fit),           cmocka_unit_test(test_a_clock_that_goes_back),
        cmocka_unit_test(test_threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
