/* Who comes when, and for what: the schedule of a sale, and Zipf's law. */
#include "tests/unit/unit.h"

#include "loadtest/openloop/schedule.h"
#include "loadtest/stats/zipf.h"

#include <math.h>

static struct schedule_plan plan_of(const char *shape, double rate, int64_t duration_ms)
{
    return (struct schedule_plan){.shape = shape_find(shape),
                                  .rate = rate,
                                  .duration_ms = duration_ms,
                                  .products = 10,
                                  .zipf = 1,
                                  .seed = 7};
}

static struct schedule opened(const struct schedule_plan *plan)
{
    struct schedule schedule;
    assert_true(schedule_open(plan, &schedule));
    assert_int_equal(schedule.count, schedule_count(plan));
    return schedule;
}

static void test_shapes(void **state)
{
    assert_null(shape_find("round"));
    for (size_t i = 0; SHAPE_NAMES[i]; i++) {
        const struct shape *shape = shape_find(SHAPE_NAMES[i]);
        assert_non_null(shape);
        double time = 0;
        for (size_t p = 0; p < shape->phase_count; p++)
            time += shape->phases[p].share;
        assert_true(fabs(time - 1) < 1e-9);
    }
}

static void test_counts(void **state)
{
    static const struct {
        const char *shape;
        double rate;
        int64_t ms;
        size_t count;
    } ROWS[] = {
        {"flat", 1000, 2000, 2000},
        {"flat", 0.1, 100, 1}, /* a sale has one buyer at least */
        {"flat", 333.3, 1000, 333},
        /* 0.2 × 0.1 + 0.3 × 1 + 0.5 × 0.4 of the time at full rate */
        {"flash", 1000, 10000, 5200},
        {"flat", 1e6, 11000, ARRIVALS_MAX + 1},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct schedule_plan plan = plan_of(ROWS[i].shape, ROWS[i].rate, ROWS[i].ms);
        assert_int_equal(schedule_count(&plan), ROWS[i].count);
    }
    struct schedule_plan too_many = plan_of("flat", 1e6, 11000);
    struct schedule none;
    assert_false(schedule_open(&too_many, &none));
}

static void test_arrivals_are_in_order_and_within_the_sale(void **state)
{
    for (int64_t seed = 0; seed < 20; seed++) {
        struct schedule_plan plan = plan_of("flash", 900, 3000);
        plan.seed = seed;
        struct schedule schedule = opened(&plan);
        int64_t before = 0;
        for (size_t i = 0; i < schedule.count; i++) {
            const struct arrival *arrival = &schedule.arrivals[i];
            assert_true(arrival->at_us >= before && arrival->at_us <= 3000000);
            assert_true(arrival->product < 10);
            before = arrival->at_us;
        }
        schedule_close(&schedule);
    }
}

static void test_the_shape_shows(void **state)
{
    struct schedule_plan plan = plan_of("flash", 10000, 10000);
    struct schedule schedule = opened(&plan);
    double counts[PHASES_MAX] = {0}, until = 0;
    for (size_t i = 0; i < schedule.count; i++) {
        const struct arrival *arrival = &schedule.arrivals[i];
        counts[arrival->phase]++;
        until = 0;
        for (uint32_t p = 0; p <= arrival->phase; p++)
            until += plan.shape->phases[p].share * 1e7;
        double since = until - plan.shape->phases[arrival->phase].share * 1e7;
        if ((double)arrival->at_us < since - 1 || (double)arrival->at_us > until + 1)
            fail_msg("an arrival of phase %u comes at %lld us", arrival->phase, (long long)arrival->at_us);
    }
    for (size_t p = 0; p < plan.shape->phase_count; p++) {
        double expected = 10000 * 10 * plan.shape->phases[p].share * plan.shape->phases[p].pace;
        if (fabs(counts[p] - expected) > 5 * sqrt(expected))
            fail_msg("%s: %.0f arrivals, %.0f expected", plan.shape->phases[p].name, counts[p], expected);
    }
    schedule_close(&schedule);
}

/* In a Poisson process gaps spread as much as their mean; with a constant gap they would not spread at all. */
static void test_gaps_are_those_of_chance(void **state)
{
    struct schedule_plan plan = plan_of("flat", 10000, 10000);
    struct schedule schedule = opened(&plan);
    double sum = 0, squares = 0, longer = 0, count = (double)schedule.count - 1;
    for (size_t i = 1; i < schedule.count; i++) {
        double gap = (double)(schedule.arrivals[i].at_us - schedule.arrivals[i - 1].at_us);
        sum += gap;
        squares += gap * gap;
        longer += gap > 200; /* twice the mean: e^-2 of them */
    }
    double mean = sum / count, deviation = sqrt(squares / count - mean * mean);
    assert_true(fabs(mean - 100) < 1);
    assert_true(fabs(deviation / mean - 1) < 0.03);
    assert_true(fabs(longer / count - exp(-2)) < 0.01);
    schedule_close(&schedule);
}

static bool same_times(const struct schedule *a, const struct schedule *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->arrivals[i].at_us != b->arrivals[i].at_us)
            return false;
    return a->count == b->count;
}

static void test_the_seed_decides(void **state)
{
    struct schedule_plan plan = plan_of("flash", 500, 4000);
    struct schedule first = opened(&plan), again = opened(&plan);
    assert_memory_equal(first.arrivals, again.arrivals, first.count * sizeof *first.arrivals);
    schedule_close(&again);

    plan.products = 3; /* other products do not move the arrivals */
    struct schedule fewer = opened(&plan);
    assert_true(same_times(&first, &fewer));
    schedule_close(&fewer);

    for (int64_t seed = 8; seed < 12; seed++) {
        plan.seed = seed;
        struct schedule differs = opened(&plan);
        assert_false(same_times(&first, &differs));
        schedule_close(&differs);
    }
    schedule_close(&first);
}

/* ---- Zipf ---------------------------------------------------------------------------------------------- */

static void test_zipf_shares(void **state)
{
    struct zipf zipf;
    assert_true(zipf_open(4, 1, &zipf)); /* 1, 1/2, 1/3, 1/4 of 25/12 */
    static const double UP_TO[] = {12.0 / 25, 18.0 / 25, 22.0 / 25, 1};
    for (size_t k = 0; k < 4; k++) {
        assert_true(fabs(zipf.up_to[k] - UP_TO[k]) < 1e-12);
        assert_int_equal(zipf_choose(&zipf, UP_TO[k] - 1e-9), k);
    }
    assert_int_equal(zipf_choose(&zipf, 0), 0);
    zipf_close(&zipf);

    assert_true(zipf_open(5, 0, &zipf));
    for (size_t k = 0; k < 5; k++)
        assert_int_equal(zipf_choose(&zipf, (double)k / 5 + 0.1), k);
    zipf_close(&zipf);

    assert_true(zipf_open(1, 3, &zipf));
    assert_int_equal(zipf_choose(&zipf, 0.999999), 0);
    zipf_close(&zipf);

    assert_true(zipf_open(1000, 10, &zipf)); /* nearly all for one */
    assert_int_equal(zipf_choose(&zipf, 0.99), 0);
    assert_in_range(zipf_choose(&zipf, 1 - 0x1p-48), 0, 999);
    zipf_close(&zipf);
}

static void test_buyers_follow_zipf(void **state)
{
    struct schedule_plan plan = plan_of("flat", 10000, 10000);
    struct schedule schedule = opened(&plan);
    double counts[10] = {0}, sum = 0;
    for (size_t i = 0; i < schedule.count; i++)
        counts[schedule.arrivals[i].product]++;
    for (size_t k = 0; k < 10; k++)
        sum += 1.0 / (double)(k + 1);
    for (size_t k = 0; k < 10; k++) {
        double expected = (double)schedule.count / (double)(k + 1) / sum;
        if (fabs(counts[k] - expected) > 5 * sqrt(expected))
            fail_msg("product %zu: %.0f buyers, %.0f expected", k, counts[k], expected);
    }
    schedule_close(&schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_arrivals_are_in_order_and_within_the_sale),
        cmocka_unit_test(test_the_shape_shows),
        cmocka_unit_test(test_gaps_are_those_of_chance),
        cmocka_unit_test(test_the_seed_decides),
        cmocka_unit_test(test_zipf_shares),
        cmocka_unit_test(test_buyers_follow_zipf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
