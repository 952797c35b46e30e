/* What a long sale says: growth, descriptors and books each have a bound, and past it the row is broken. */
#include "loadtest/soak/soak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ORDERS 400000
#define WARM_UP 25000
#define CHUNK 32 /* the smallest that malloc gives */

static struct soak_counts sound(void)
{
    const struct soak_size size = {.memory = 30 << 20, .files = 90};
    return (struct soak_counts){
        .orders = ORDERS, .warm_up = WARM_UP, .slices = 16, .start = size, .end = size};
}

static void assert_verdict(const struct soak_counts *counts, const char *wanted)
{
    json_auto_t *cells = json_pack("{s:s}", "guarantee", "safe");
    const struct subject subject = {.name = "batched", .cells = cells};
    json_auto_t *row = soak_row_new(&subject, counts);
    assert_non_null(row);
    assert_string_equal(json_string_value(json_object_get(row, "verdict")), wanted);
}

static void what_stays_as_it_was_is_sound(void **state)
{
    struct soak_counts counts = sound();
    assert_verdict(&counts, "ok");
    counts.end.memory -= 10 << 20;
    counts.end.files -= 50;
    counts.busy = counts.errors = 1000; /* nothing was sold, and nobody was told otherwise */
    assert_verdict(&counts, "ok");
    assert_verdict(NULL, "unavailable");
}

static void the_smallest_leak_in_each_order_is_seen(void **state)
{
    struct soak_counts counts = sound();
    counts.end.memory += (int64_t)(ORDERS - WARM_UP) * CHUNK;
    assert_false(soak_is_flat(&counts));
    assert_verdict(&counts, "broken");
    counts.end.memory = counts.start.memory + soak_growth_allowed(ORDERS - WARM_UP);
    assert_true(soak_is_flat(&counts));
    counts.end.memory++;
    assert_false(soak_is_flat(&counts));
}

static void a_descriptor_in_a_thousand_orders_is_seen(void **state)
{
    struct soak_counts counts = sound();
    counts.end.files += 20; /* workers that connect later than others */
    assert_verdict(&counts, "ok");
    counts.end.files = counts.start.files + ORDERS / 1000;
    assert_verdict(&counts, "broken");
}

static void books_that_are_off_are_seen(void **state)
{
    for (int which = 0; which < 5; which++) {
        struct soak_counts counts = sound();
        counts.oversold = which == 0;
        counts.drift = which == 1 ? -1 : 0;
        counts.negative = which == 2;
        counts.mismatched = which == 3;
        counts.stalled = which == 4;
        assert_verdict(&counts, "broken");
    }
}

static void assert_closing(const struct soak_counts *counts, const char *wanted)
{
    json_auto_t *cells = json_pack("{s:s}", "guarantee", "safe");
    const struct subject subject = {.name = "batched", .cells = cells};
    json_auto_t *document = json_pack("{s:[o]}", "rows", soak_row_new(&subject, counts));
    struct notes notes = {0};
    soak_result.notes(document, &notes);
    assert_int_equal(notes.item[notes.count - 1].kind, NOTE_CLOSING);
    if (!strstr(notes.item[notes.count - 1].text, wanted))
        fail_msg("not '%s', but '%s'", wanted, notes.item[notes.count - 1].text);
    notes_free(&notes);
}

static void what_was_not_sold_is_not_praised(void **state)
{
    struct soak_counts counts = sound();
    assert_closing(&counts, "400,000 orders under 1 strategy. Memory is flat");
    assert_closing(NULL, "No order was created.");
    counts.drift = 1;
    assert_closing(&counts, "NOT all checks passed");
    counts.orders = 0; /* which is the flaw itself */
    assert_closing(&counts, "NOT all checks passed");
}

/* However long the sale is, a bounded number of points is kept, from its start to near its end. */
static void test_points_are_thinned(void **state)
{
    for (int64_t slices = 1; slices < 1000; slices += 37) {
        struct soak_points points = {0};
        for (int64_t i = 1; i <= slices; i++)
            soak_points_add(&points, &(struct soak_point){.orders = i});
        assert_in_range(points.count, slices < SOAK_POINTS_MAX ? (size_t)slices : SOAK_POINTS_MAX / 2,
                        SOAK_POINTS_MAX);
        assert_int_equal(points.item[0].orders, 1);
        for (size_t i = 1; i < points.count; i++)
            assert_int_equal(points.item[i].orders - points.item[i - 1].orders, points.stride);
        assert_true(points.item[points.count - 1].orders > slices - 2 * points.stride);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_are_thinned),
        cmocka_unit_test(what_stays_as_it_was_is_sound),
        cmocka_unit_test(the_smallest_leak_in_each_order_is_seen),
        cmocka_unit_test(a_descriptor_in_a_thousand_orders_is_seen),
        cmocka_unit_test(books_that_are_off_are_seen),
        cmocka_unit_test(what_was_not_sold_is_not_praised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
