/* The histogram of latencies: how near it comes, what merging gives, its extremes, and the text that hdrplot reads. */
#include "tests/unit/unit.h"

#include "loadtest/stats/hdr.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct hdr hdr, other, all;

static void clear(void)
{
    memset(&hdr, 0, sizeof hdr);
    memset(&other, 0, sizeof other);
    memset(&all, 0, sizeof all);
}

/* What is said of US may be up to a thousandth above it, never below. */
static void check_near(int64_t said, int64_t us)
{
    if (said < us || said > us + us / HDR_SUB)
        fail_msg("%lld us came back as %lld", (long long)us, (long long)said);
}

static void check_value(int64_t us)
{
    memset(&hdr, 0, sizeof hdr);
    hdr_add(&hdr, us);
    hdr_add(&hdr, INT64_MAX); /* so that the greatest sample does not give the value away */
    check_near(hdr_percentile(&hdr, 0.5), us);
}

static void test_every_value_is_known_to_a_thousandth(void **state)
{
    clear();
    for (int64_t us = 0; us < 3000; us++)
        check_value(us);
    for (int64_t us = 3000; us < INT64_C(3600000000); us += us / 97 + 1)
        check_value(us);
    for (int shift = 11; shift < 32; shift++)
        for (int64_t near = -1; near <= 1; near++)
            check_value(((int64_t)1 << shift) + near);
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void test_percentiles_against_a_sorted_list(void **state)
{
    enum { SAMPLES = 20000 };
    static int64_t samples[SAMPLES];
    unsigned short chance[3] = {1, 2, 3};
    double sum = 0;
    clear();
    for (int i = 0; i < SAMPLES; i++) {
        samples[i] = (int64_t)exp(erand48(chance) * 20); /* 1 us to 8 minutes, all magnitudes alike */
        sum += (double)samples[i];
        hdr_add(&hdr, samples[i]);
    }
    qsort(samples, SAMPLES, sizeof samples[0], ascending);
    static const double SHARES[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
    for (size_t i = 0; i < COUNT(SHARES); i++) {
        double rank = ceil(SHARES[i] * SAMPLES);
        check_near(hdr_percentile(&hdr, SHARES[i]), samples[rank < 1 ? 0 : (int)rank - 1]);
    }
    assert_int_equal(hdr_percentile(&hdr, 1), samples[SAMPLES - 1]);
    assert_true(fabs(hdr_mean(&hdr) - sum / SAMPLES) < 1e-6 * sum / SAMPLES);
}

static void test_merging_is_adding(void **state)
{
    clear();
    for (int64_t i = 0; i < 5000; i++) {
        hdr_add(i % 3 ? &hdr : &other, i * i);
        hdr_add(&all, i * i);
    }
    hdr_merge(&hdr, &other);
    assert_memory_equal(hdr.buckets, all.buckets, sizeof all.buckets);
    assert_int_equal(hdr.count, all.count);
    assert_int_equal(hdr.min_us, all.min_us);
    assert_int_equal(hdr.max_us, all.max_us);
    assert_true(fabs(hdr_deviation(&hdr) - hdr_deviation(&all)) < 1e-3);

    clear();
    hdr_add(&hdr, 70);
    hdr_merge(&hdr, &other); /* nothing into something */
    assert_int_equal(hdr.min_us, 70);
    hdr_merge(&other, &hdr); /* and the reverse */
    assert_int_equal(other.min_us, 70);
    assert_int_equal(hdr_percentile(&other, 0.5), 70);
}

static void test_extremes(void **state)
{
    clear();
    assert_int_equal(hdr_percentile(&hdr, 0.5), -1);
    assert_true(hdr_mean(&hdr) == 0 && hdr_deviation(&hdr) == 0);

    hdr_add(&hdr, -7); /* a clock that goes back */
    assert_int_equal(hdr_percentile(&hdr, 1), 0);
    assert_int_equal(hdr.min_us, 0);

    hdr_add(&hdr, INT64_MAX);
    hdr_add(&hdr, (int64_t)1 << 40);
    assert_int_equal(hdr_percentile(&hdr, 1), INT64_MAX);
    assert_int_equal(hdr.count, 3);
    assert_int_equal(hdr.buckets[HDR_BUCKETS - 1], 2);
}

/* Prints into TEXT, which is to be freed. */
static char *printed(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    hdr_print(&hdr, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_the_text_of_two_samples(void **state)
{
    clear();
    hdr_add(&hdr, 1000);
    hdr_add(&hdr, 3000);
    char *text = printed();
    static const char EXPECTED[] = "       Value     Percentile TotalCount 1/(1-Percentile)\n"
                                   "\n"
                                   "       1.000 0.000000000000          1           1.00\n"
                                   "       1.000 0.100000000000          1           1.11\n"
                                   "       1.000 0.200000000000          1           1.25\n"
                                   "       1.000 0.300000000000          1           1.43\n"
                                   "       1.000 0.400000000000          1           1.67\n"
                                   "       1.000 0.500000000000          1           2.00\n"
                                   "       3.000 0.550000000000          2           2.22\n"
                                   "       3.000 1.000000000000          2            inf\n"
                                   "#[Mean    =        2.000, StdDeviation   =        1.000]\n"
                                   "#[Max     =        3.000, Total count    =            2]\n"
                                   "#[Buckets =           23, SubBuckets     =         1024]\n";
    assert_string_equal(text, EXPECTED);
    free(text);
}

/* Reads it as the plotter does: lines of four words whose first and last are numbers. */
static void test_the_text_of_many_samples(void **state)
{
    clear();
    for (int64_t i = 1; i <= 100000; i++)
        hdr_add(&hdr, i);
    char *text = printed();
    double value, share, inverse, last_value = 0, last_share = -1;
    long long total = 0, lines = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        if (*line == '#' || sscanf(line, "%lf %lf %lld %lf", &value, &share, &total, &inverse) != 4)
            continue;
        lines++;
        assert_true(value >= last_value && share > last_share);
        assert_true(value >= share * 100 - 0.001 && value <= share * 100 * 1.001 + 0.001);
        assert_true((double)total >= share * 100000 - 0.001);
        assert_true(isinf(inverse) || fabs(inverse * (1 - share) - 1) < 0.02);
        last_value = value;
        last_share = share;
    }
    assert_true(last_share == 1 && total == 100000);
    assert_in_range(lines, 50, 150);
    free(text);
}

static void test_the_text_of_none(void **state)
{
    clear();
    char *text = printed();
    assert_non_null(strstr(text, "Total count    =            0]"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_value_is_known_to_a_thousandth),
        cmocka_unit_test(test_percentiles_against_a_sorted_list),
        cmocka_unit_test(test_merging_is_adding),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_the_text_of_two_samples),
        cmocka_unit_test(test_the_text_of_many_samples),
        cmocka_unit_test(test_the_text_of_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
