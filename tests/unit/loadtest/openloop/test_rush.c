/* How a rush is printed: what its notes say of the tail, of those who fell behind, and of a generator that was late. */
#include "tests/unit/unit.h"

#include "loadtest/openloop/rush_row.h"
#include "loadtest/report/format.h"
#include "loadtest/stats/cpu_steal.h"

#include <stdlib.h>

struct figures {
    const char *strategy;
    double p50, p99;
    int behind, late, dropped, timed_out, left;
};

static json_t *row_of(const struct figures *f)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:{s:f, s:f}, s:[], s:[]}",
                     "strategy", f->strategy, "guarantee", "safe", "verdict", "ok", "arrivals", 15000,
                     "answered", 15000 - f->left, "created", 900, "behind", f->behind, "late", f->late,
                     "dropped", f->dropped, "timed_out", f->timed_out, "worst_lag_ms", 12.0, "p99_over_p50",
                     f->p99 / f->p50, "latency_ms", "p50", f->p50, "p99", f->p99, "phases", "outcomes");
}

/* The document as Markdown, to be freed. ROWS is stolen. */
static char *printed(json_t *rows, double percent)
{
    json_auto_t *document = json_pack(
        "{s:i, s:s, s:{s:f, s:i, s:s, s:i, s:i, s:i, s:i, s:i}, s:o}", "version", 1, "kind", "rush",
        "settings", "load_percent", percent, "rate", percent > 0 ? 0 : 400, "shape", "flat", "duration_ms",
        2000, "connections", 1, "products", 2, "instances", 1, "late_ms", 10, "rows", rows);
    struct result_table table;
    char *text = NULL;
    size_t size;
    assert_non_null(document);
    assert_true(table_open(&rush_result, document, &table));
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(format_markdown(&table, &(struct page){0}, out));
    assert_int_equal(fclose(out), 0);
    table_close(&table);
    return text;
}

static void check_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void test_the_goal_for_the_tail(void **state)
{
    static const struct figures ROWS[] = {
        {"even", .p50 = 2, .p99 = 20},
        {"uneven", .p50 = 2, .p99 = 20.1},
        {"swamped", .p50 = 900, .p99 = 1000, .behind = 400},
        {"calm", .p50 = 1, .p99 = 2},
    };
    json_t *rows = json_array();
    for (size_t i = 0; i < COUNT(ROWS); i++)
        json_array_append_new(rows, row_of(&ROWS[i]));
    json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s}", "strategy", "absent", "guarantee", "safe",
                                          "verdict", "unavailable", "reason", "no server"));
    char *text = printed(rows, 70);
    check_has(text, "70 % of each strategy's throughput for 2s, flat, 2 products; 1 connection to 1 service");
    check_has(text,
              "at most 10 times their median. Reached: even, calm. Missed: uneven. Fell behind: swamped.");
    check_has(text, "swamped fell behind: 400 buyers still waited");
    check_has(text, "absent: not available: no server");
    free(text);
}

/* Adds to ROWS a row that missed the goal, with what the probe measured. */
static void append_probed(json_t *rows, const char *strategy, int count, double p99, double wakeup,
                          double stolen, double lag)
{
    json_t *row = row_of(&(struct figures){strategy, .p50 = 2, .p99 = 30});
    assert_int_equal(json_object_set_new(row, "worst_lag_ms", json_real(lag)), 0);
    assert_int_equal(json_object_set_new(row, "flush_ms",
                                         json_pack("{s:i, s:f, s:f, s:f, s:f}", "count", count, "p50", 1.5,
                                                   "p99", p99, "max", 31.0, "wakeup_p99", wakeup)),
                     0);
    assert_int_equal(json_object_set_new(row, "stolen_percent",
                                         json_pack("{s:f, s:f}", "mean", stolen / 2, "worst_second", stolen)),
                     0);
    json_array_append_new(rows, row);
}

static void test_the_reason_of_a_long_tail_is_measured(void **state)
{
    json_t *rows = json_array();
    append_probed(rows, "disk", 100, 15, 7.5, 0, 20);
    append_probed(rows, "processors", 100, 20, 15, 0, 20);
    append_probed(rows, "unexplained", 100, 14.9, 1, 0, 15);
    append_probed(rows, "short", 99, 25, 1, 0, 20);
    append_probed(rows, "hypervisor", 100, 1, 1, 30, 20);
    append_probed(rows, "shared", 100, 1, 1, 29.9, 14.9);
    char *text = printed(rows, 70);
    check_has(text, "(8 KiB each, one every 20 ms): disk p50 1.5 ms, p99 15.0, max 31.0; processors p50");
    check_has(text,
              "disk: the disk can explain the p99 of 30.0 ms: 1 % of the flushes took longer than 15.0 ms.");
    check_has(text, "processors: busy processors can explain the p99 of 30.0 ms");
    check_has(
        text,
        "unexplained: the disk alone does not explain the p99 of 30.0 ms, because 99 % of the flushes took at most "
        "14.9 ms. The load generator itself was up to 15.0 ms late.");
    check_has(text, "short: only 99 flushes were measured");
    check_has(
        text,
        "hypervisor: the hypervisor can explain the p99 of 30.0 ms: in the worst second it withheld 30 % of the "
        "processor time, and the load of 70 % leaves 30 % free.");
    check_has(text,
              "shared: the disk alone does not explain the p99 of 30.0 ms, because 99 % of the flushes took "
              "at most 1.0 ms.\n");
    free(text);
}

static void test_withheld_time_is_a_share_of_all_processors(void **state)
{
    const struct cpu_ticks before = {.all = 1000, .stolen = 100}, after = {.all = 1400, .stolen = 200};
    assert_true(cpu_stolen_percent(&before, &after) == 25);
    assert_true(cpu_stolen_percent(&after, &before) == 0);
    assert_true(cpu_stolen_percent(&before, &before) == 0);
    struct cpu_ticks now;
    assert_true(cpu_ticks_read(&now));
    assert_true(now.all > 0 && now.stolen <= now.all);
}

static void test_warnings_name_what_no_percentile_shows(void **state)
{
    static const struct figures ROWS[] = {
        {"punctual", .p50 = 2, .p99 = 4, .late = 150}, /* one in a hundred may be late */
        {"slow", .p50 = 2, .p99 = 4, .late = 151},
        {"lossy", .p50 = 2, .p99 = 4, .dropped = 7, .timed_out = 93},
    };
    json_t *rows = json_array();
    for (size_t i = 0; i < COUNT(ROWS); i++)
        json_array_append_new(rows, row_of(&ROWS[i]));
    char *text = printed(rows, 0);
    check_has(text, "Open loop: 400 buyers per second for 2s");
    check_has(text, "slow: the load generator was too slow: it sent 151 of 15,000 orders");
    assert_null(strstr(text, "punctual: the load generator"));
    check_has(text, "lossy: 7 of 15,000 buyers were dropped");
    check_has(text, "lossy: 93 of 15,000 buyers gave up");
    free(text);
}

/* The percentiles are those of the created orders, so they do not show the buyers who left without an answer. */
static void test_the_headline_counts_who_got_no_answer(void **state)
{
    static const struct {
        struct figures rows[2];
        const char *headline;
    } CASES[] = {
        {{{"a", .p50 = 1, .p99 = 4, .left = 150}, {"b", .p50 = 1, .p99 = 9}},
         "99 of 100 buyers had their order within 4.0 ms with a, and within 9.0 ms with b."},
        {{{"a", .p50 = 1, .p99 = 4, .left = 612}, {"b", .p50 = 1, .p99 = 9}},
         "a left 612 of 15,000 buyers without an answer; 99 of 100 buyers had their order within 9.0 ms with b."},
        {{{"a", .p50 = 1, .p99 = 4, .left = 1164}, {"b", .p50 = 1, .p99 = 9, .left = 295}},
         "a left 1,164 of 15,000 buyers without an answer; b left 295 without an answer."},
        {{{"a", .p50 = 1, .p99 = 4, .left = 612}},
         "a left 612 of 15,000 buyers without an answer; 99 of 100 created orders were answered within 4.0 ms."},
        {{{"a", .p50 = 1, .p99 = 4}},
         "a: half of the buyers had their order within 1.0 ms, 99 of 100 within 4.0 ms."},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        char headline[256];
        json_auto_t *rows = json_array();
        for (size_t j = 0; j < 2 && CASES[i].rows[j].strategy; j++)
            json_array_append_new(rows, row_of(&CASES[i].rows[j]));
        json_auto_t *document = json_pack("{s:O}", "rows", rows);
        assert_true(table_sentence(rush_result.headline, document, headline, sizeof headline));
        assert_string_equal(headline, CASES[i].headline);
    }
    /* One that answered nobody has no percentiles. */
    char headline[256];
    json_auto_t *none = json_pack("{s:[{s:s, s:i, s:i, s:{s:n}}]}", "rows", "strategy", "a", "arrivals", 1200,
                                  "answered", 0, "latency_ms", "p99");
    assert_true(table_sentence(rush_result.headline, none, headline, sizeof headline));
    assert_string_equal(headline, "a left 1,200 of 1,200 buyers without an answer.");
}

static void test_every_column_says_what_it_is(void **state)
{
    for (size_t i = 0; i < rush_result.column_count; i++) {
        assert_non_null(rush_result.columns[i].path);
        assert_true(rush_result.columns[i].shown && *rush_result.columns[i].heading &&
                    *rush_result.columns[i].meaning);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_goal_for_the_tail),
        cmocka_unit_test(test_the_reason_of_a_long_tail_is_measured),
        cmocka_unit_test(test_withheld_time_is_a_share_of_all_processors),
        cmocka_unit_test(test_warnings_name_what_no_percentile_shows),
        cmocka_unit_test(test_the_headline_counts_who_got_no_answer),
        cmocka_unit_test(test_every_column_says_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
