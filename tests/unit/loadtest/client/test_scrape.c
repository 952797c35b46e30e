/* Reading the services' metrics: the text format, sums over services, differences, percentiles. */
#include "tests/unit/unit.h"

#include "loadtest/client/scrape.h"

#include <math.h>
#include <stdio.h>

#define BUCKET(le, count)                                                                                    \
    "oversell_order_seconds_bucket{strategy=\"mutex\",outcome=\"created\",le=\"" le "\"} " count "\n"

static struct scrape read_all(const char *first, const char *second)
{
    struct scrape scrape = {0};
    assert_true(scrape_add(first, "mutex", &scrape));
    if (second)
        assert_true(scrape_add(second, "mutex", &scrape));
    return scrape;
}

static double p(const struct histogram *histogram, double share)
{
    return histogram_percentile(histogram, share);
}

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void test_counters_of_one_strategy(void **state)
{
    struct scrape scrape = read_all(
        "# HELP oversell_orders_total Orders.\n"
        "# TYPE oversell_orders_total counter\n"
        "oversell_orders_total{strategy=\"mutex\",outcome=\"created\"} 7\n"
        "oversell_orders_total{strategy=\"mutex\",outcome=\"sold-out\"} 3\n"
        "oversell_orders_total{strategy=\"mutex-per-product\",outcome=\"created\"} 99\n"
        "oversell_order_tries_total{strategy=\"mutex\"} 12\n"
        "oversell_db_round_trips_total{strategy=\"mutex\"} 4.2e1\n"
        "oversell_db_round_trips_total 5\n"
        "process_resident_memory_bytes 1e6\n",
        NULL);
    assert_near(scrape.orders, 10);
    assert_near(scrape.tries, 12);
    assert_near(scrape.round_trips, 42);
}

static void test_labels_in_any_order_and_odd_lines(void **state)
{
    struct scrape scrape = read_all(
        "oversell_orders_total{outcome=\"created\", strategy=\"mutex\"} 1\n"
        "oversell_orders_total{detail=\"a } brace, \\\" a quote\",strategy=\"mutex\"} 2\n"
        "oversell_orders_total{strategy=\"mutex\"\n"
        "oversell_orders_total{strategy=\"mutex\"} many\n"
        "\n"
        "oversell_orders_total{strategy=\"mutex\"} 4 1700000000",
        NULL);
    assert_near(scrape.orders, 7); /* lines that are no samples are passed over */
}

static void test_percentiles(void **state)
{
    struct scrape scrape = read_all(
        BUCKET("0.001", "50") BUCKET("0.002", "90") BUCKET("0.01", "99") BUCKET("+Inf", "100"), NULL);
    assert_near(p(&scrape.created, 0.5), 0.001);
    assert_near(p(&scrape.created, 0.51), 0.002);
    assert_near(p(&scrape.created, 0.9), 0.002);
    assert_near(p(&scrape.created, 0.99), 0.01);
    assert_near(p(&scrape.created, 1), 0.01); /* past the last bound: that bound */
    assert_near(p(&scrape.created, 0), 0.001);
}

static void test_no_samples(void **state)
{
    struct scrape scrape = read_all("", NULL);
    assert_true(isnan(p(&scrape.created, 0.5)));
    scrape = read_all(BUCKET("0.001", "0") BUCKET("+Inf", "0"), NULL);
    assert_true(isnan(p(&scrape.created, 0.5)));
}

static void test_other_outcomes_do_not_count(void **state)
{
    struct scrape scrape = read_all(
        "oversell_order_seconds_bucket{strategy=\"mutex\",outcome=\"sold-out\",le=\"9\"} 1000\n" //
        BUCKET("0.001", "1") BUCKET("+Inf", "1"),
        NULL);
    assert_near(p(&scrape.created, 0.99), 0.001);
}

/* A service leaves out the buckets that are empty, so two of them have different bounds. */
static void test_two_services_with_other_bounds(void **state)
{
    struct scrape scrape = read_all(BUCKET("0.001", "10") BUCKET("0.004", "20") BUCKET("+Inf", "20"),
                                    BUCKET("0.002", "10") BUCKET("0.008", "20") BUCKET("+Inf", "20"));
    assert_near(p(&scrape.created, 0.25), 0.001);
    assert_near(p(&scrape.created, 0.5), 0.002);
    assert_near(p(&scrape.created, 0.75), 0.004);
    assert_near(p(&scrape.created, 1), 0.008);
}

static void test_difference(void **state)
{
    struct scrape before = read_all(BUCKET("0.001", "10") BUCKET("+Inf", "10") //
                                    "oversell_order_tries_total{strategy=\"mutex\"} 10\n",
                                    NULL);
    struct scrape after = read_all(BUCKET("0.001", "10") BUCKET("0.1", "14") BUCKET("+Inf", "14") //
                                   "oversell_order_tries_total{strategy=\"mutex\"} 17\n",
                                   NULL);
    struct scrape gained;
    scrape_difference(&before, &after, &gained);
    assert_near(gained.tries, 7);
    assert_near(p(&gained.created, 0.01), 0.1); /* only the four slow ones are new */
}

static void test_lock_waits(void **state)
{
    struct scrape scrape = read_all("oversell_lock_wait_seconds_bucket{strategy=\"mutex\",le=\"0.5\"} 3\n"
                                    "oversell_lock_wait_seconds_bucket{strategy=\"mutex\",le=\"+Inf\"} 3\n",
                                    NULL);
    assert_near(p(&scrape.lock_wait, 0.99), 0.5);
    assert_true(isnan(p(&scrape.created, 0.5)));
}

static void test_what_is_no_histogram_is_refused(void **state)
{
    struct scrape scrape = {0};
    assert_false(scrape_add(BUCKET("0.001", "9") BUCKET("0.002", "8"), "mutex", &scrape)); /* counts fall */
    memset(&scrape, 0, sizeof scrape);
    assert_false(scrape_add(BUCKET("soon", "9"), "mutex", &scrape));
    memset(&scrape, 0, sizeof scrape);
    char text[HISTOGRAM_MAX * 120], *end = text; /* one bucket more than there is room for */
    for (int i = 0; i <= HISTOGRAM_MAX; i++)
        end += snprintf(end, (size_t)(text + sizeof text - end), BUCKET("%d", "%d"), i + 1, i + 1);
    assert_false(scrape_add(text, "mutex", &scrape));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters_of_one_strategy),
        cmocka_unit_test(test_labels_in_any_order_and_odd_lines),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_no_samples),
        cmocka_unit_test(test_other_outcomes_do_not_count),
        cmocka_unit_test(test_two_services_with_other_bounds),
        cmocka_unit_test(test_difference),
        cmocka_unit_test(test_lock_waits),
        cmocka_unit_test(test_what_is_no_histogram_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
