/* Rows of a result: what a measurement becomes, what several become, and the identities between counts. */
#include "tests/unit/unit.h"

#include "loadtest/load/row.h"

#include <stdio.h>
#include <stdlib.h>

#define RESULT(sent, answered)                                                                                   \
    "{\"sent\":" sent ",\"answered\":" answered ",\"created\":10,\"sold_out\":20,\"lock_busy\":1,"               \
    "\"conflict\":2,\"overloaded\":3,\"lock_lost\":4,\"unavailable\":5,\"unknown\":6,\"other\":7,"               \
    "\"window_created\":9,\"created_late\":0,\"elapsed_us\":2500000,\"window_us\":1000000,\"socket_connect\":0," \
    "\"socket_read\":1,\"socket_write\":0,\"slow\":0}"

/* ---- what wrk says ------------------------------------------------------------------------------------- */

static void test_counts_add_up(void **state)
{
    struct load_result result;
    assert_true(load_result_parse(RESULT("61", "58"), &result));
    const struct answers *a = &result.answers;
    assert_int_equal(a->unanswered, 3);
    assert_int_equal(a->busy, a->lock_busy + a->conflict + a->overloaded + a->lock_lost);
    assert_int_equal(a->errors, a->unavailable + a->unknown + a->unanswered + a->other);
    assert_int_equal(a->requests, a->created + a->sold_out + a->busy + a->errors);
    assert_true(result.elapsed_s == 2.5 && result.window_s == 1);
}

static void test_what_is_no_result_is_refused(void **state)
{
    struct load_result result;
    static const char *const BAD[] = {"", "{", "[]", "{}", "{\"sent\":1}", RESULT("\"61\"", "58")};
    for (size_t i = 0; i < COUNT(BAD); i++)
        if (load_result_parse(BAD[i], &result))
            fail_msg("'%s' was taken for a result", BAD[i]);
}

/* Every 201 is an order, and every order is a 201, unless the client could not know. */
static void test_answers_against_orders(void **state)
{
    static const struct {
        int64_t created, unknown, unanswered, orders;
        bool match;
    } CASES[] = {
        {10, 0, 0, 10, true},  {10, 0, 0, 9, false}, {10, 0, 0, 11, false},
        {10, 1, 0, 11, true},  {10, 0, 1, 11, true}, {10, 1, 1, 12, true},
        {10, 1, 1, 13, false}, {10, 5, 5, 9, false}, {0, 0, 0, 0, true},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct phase phase = {.ran = true, .books = {.orders = CASES[i].orders}};
        phase.load.answers = (struct answers){
            .created = CASES[i].created, .unknown = CASES[i].unknown, .unanswered = CASES[i].unanswered};
        if (phase_answers_match(&phase) != CASES[i].match)
            fail_msg("%lld told, %lld there: case %zu", (long long)CASES[i].created,
                     (long long)CASES[i].orders, i);
    }
}

/* ---- one measurement ----------------------------------------------------------------------------------- */

static const char MUTEX[] =
    "{\"name\":\"mutex\",\"guarantee\":\"one-process\",\"shown_by\":\"second-process+crash\","
    "\"why\":\"…\",\"available\":true,\"reason\":null}";

static json_t *row_for(struct measurement *measurement, const char *strategy_text)
{
    struct testbed testbed = {.count = 2};
    struct plan plan = {.sell_out = true, .throughput = true, .connections = 16, .stock = 100, .quantity = 1};
    json_auto_t *strategy = json_loads(strategy_text, 0, NULL);
    struct subject subject;
    assert_true(subject_read(strategy, &subject));
    json_t *row = row_new(&testbed, &plan, &subject, measurement);
    assert_non_null(row);
    return row;
}

static struct measurement oversold_measurement(void)
{
    struct measurement m = {.think_ms = 2, .verdict = VERDICT_OVERSOLD_AS_EXPECTED};
    m.sell_out = (struct phase){
        .ran = true,
        .books = {.initial = 100,
                  .left = 0,
                  .sold = 130,
                  .orders = 130,
                  .oversold = 30,
                  .drift = 30,
                  .has_witness = true,
                  .witness_seen = 12,
                  .witness_orders = {41, 57}},
        .load = {.answers = {.requests = 400, .created = 130, .sold_out = 270}},
    };
    m.throughput = (struct phase){
        .ran = true,
        .books = {.initial = 1000, .left = 990, .sold = 10, .orders = 10, .balanced = true},
        .load = {.answers = {.requests = 10, .created = 10}, .window_created = 8, .window_s = 0.5},
        .scrape = {.created = {.buckets = 1, .bound = {0.0125}, .count = {10}},
                   .round_trips = 40,
                   .tries = 15,
                   .orders = 10},
    };
    return m;
}

static void test_a_row(void **state)
{
    struct measurement m = oversold_measurement();
    json_auto_t *row = row_for(&m, MUTEX);
    json_int_t created, oversold, drift, instances, think;
    double rate, p99, trips, retries;
    const char *verdict, *witness, *shown_by;
    int stock_kept, books_kept, answers_kept, slowed_down;
    assert_int_equal(
        json_unpack(row,
                    "{s:I, s:I, s:I, s:I, s:I, s:F, s:{s:F}, s:F, s:F, s:s, s:s, s:s, s:{s:b, s:b, s:b}, "
                    "s:b}",
                    "created", &created, "oversold", &oversold, "drift", &drift, "instances", &instances,
                    "think_ms", &think, "orders_per_s", &rate, "latency_ms", "p99", &p99,
                    "round_trips_per_order", &trips, "retries_per_order", &retries, "verdict", &verdict,
                    "witness", &witness, "shown_by", &shown_by, "kept", "stock", &stock_kept, "books",
                    &books_kept, "answers", &answers_kept, "slowed_down", &slowed_down),
        0);
    assert_int_equal(created, 130);
    assert_int_equal(oversold, 30);
    assert_int_equal(drift, 30);
    assert_int_equal(instances, 2);
    assert_int_equal(think, 2);
    assert_true(rate == 16 && p99 == 12.5 && trips == 4 && retries == 0.5);
    assert_string_equal(verdict, "oversold-as-expected");
    assert_string_equal(witness, "orders 41 and 57 both saw 12 left");
    assert_string_equal(shown_by, "second-process+crash");
    assert_false(stock_kept);
    assert_false(books_kept);
    assert_true(answers_kept);
    assert_true(slowed_down);
    assert_true(json_is_null(json_object_get(json_object_get(row, "lock_wait_ms"), "p99")));
}

/* What is sold out before the time is up has no rate. */
static void test_a_throughput_that_was_sold_out(void **state)
{
    struct measurement m = oversold_measurement();
    m.throughput.load.answers.sold_out = 1;
    json_auto_t *row = row_for(&m, MUTEX);
    assert_true(json_is_null(json_object_get(row, "orders_per_s")));
    assert_true(json_is_true(json_object_get(row, "sold_out_early")));
}

static void test_a_stock_that_its_kind_cannot_have(void **state)
{
    static const struct {
        const char *kind;
        int64_t stock;
        bool sell_out, fits;
    } CASES[] = {
        {"\"units\"", 100000, true, true},   {"\"units\"", 100001, true, false},
        {"\"units\"", 100001, false, true},  {"\"counter\"", 100001, true, true},
        {"\"buckets\"", 100001, true, true}, {"null", 100001, true, true},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        char *text = NULL;
        assert_true(
            asprintf(&text, "{\"name\":\"x\",\"guarantee\":\"safe\",\"stock_kind\":%s}", CASES[i].kind) > 0);
        json_auto_t *strategy = json_loads(text, 0, NULL);
        struct plan plan = {.sell_out = CASES[i].sell_out, .stock = CASES[i].stock};
        struct subject subject;
        assert_true(subject_read(strategy, &subject));
        subject_fit(&subject, &plan);
        if (subject.available != CASES[i].fits || (subject.reason == NULL) != CASES[i].fits)
            fail_msg("%lld of %s: case %zu", (long long)CASES[i].stock, CASES[i].kind, i);
        free(text);
    }
}

static void test_an_unavailable_row_has_every_figure(void **state)
{
    struct measurement m = {.verdict = VERDICT_UNAVAILABLE};
    json_auto_t *row = row_for(
        &m, "{\"name\":\"etcd\",\"guarantee\":\"while-lease-holds\",\"shown_by\":\"expire\","
            "\"available\":false,\"reason\":\"no etcd\"}");
    static const char *const FIGURES[] = {"created",      "oversold",   "drift",
                                          "orders_per_s", "latency_ms", "witness"};
    for (size_t i = 0; i < COUNT(FIGURES); i++)
        if (!json_is_null(json_object_get(row, FIGURES[i])))
            fail_msg("%s is missing, or is not null", FIGURES[i]);
    assert_string_equal(json_string_value(json_object_get(row, "reason")), "no etcd");
}

static void test_strategies_that_cannot_be_read(void **state)
{
    static const char *const BAD[] = {
        "{}",
        "{\"name\":\"x\"}",
        "{\"name\":\"x\",\"guarantee\":\"some\"}",
        "{\"name\":7,\"guarantee\":\"safe\"}",
        "{\"name\":\"x\",\"guarantee\":\"safe\",\"shown_by\":3}",
        "{\"name\":\"x\",\"guarantee\":\"safe\",\"shown_by\":[\"luck\"]}",
    };
    for (size_t i = 0; i < COUNT(BAD); i++) {
        json_auto_t *strategy = json_loads(BAD[i], 0, NULL);
        struct subject subject;
        if (subject_read(strategy, &subject))
            fail_msg("%s was read", BAD[i]);
    }
    json_auto_t *strategy = json_loads(
        "{\"name\":\"x\",\"guarantee\":\"unsafe\",\"shown_by\":[\"load\",\"crash\"]}", 0, NULL);
    struct subject subject;
    assert_true(subject_read(strategy, &subject));
    assert_int_equal(subject.shown_by, SHOWN_BY_LOAD | SHOWN_BY_CRASH);
    assert_true(subject.available);
    assert_string_equal(subject.kind, "counter");
}

/* ---- several runs -------------------------------------------------------------------------------------- */

static json_t *run(const char *verdict, int oversold, double rate, double p99)
{
    return json_pack("{s:s, s:i, s:f, s:{s:f, s:n}, s:s}", "verdict", verdict, "oversold", oversold,
                     "orders_per_s", rate, "latency_ms", "p99", p99, "p50", "witness", "a witness");
}

static void check_runs(const char *what, json_t *runs, const char *verdict, int oversold, double rate,
                       double p99)
{
    json_auto_t *owned = runs, *row = row_of_runs(owned);
    assert_non_null(row);
    const char *got = json_string_value(json_object_get(row, "verdict"));
    if (strcmp(got, verdict) != 0 || json_integer_value(json_object_get(row, "oversold")) != oversold ||
        json_number_value(json_object_get(row, "orders_per_s")) != rate ||
        json_number_value(json_object_get(json_object_get(row, "latency_ms"), "p99")) != p99)
        fail_msg("%s: %s", what, json_dumps(row, JSON_COMPACT));
    assert_int_equal(json_integer_value(json_object_get(row, "runs")), json_array_size(owned));
    assert_true(json_is_null(json_object_get(json_object_get(row, "latency_ms"), "p50")));
}

static void test_several_runs(void **state)
{
    check_runs("one run", json_pack("[o]", run("ok", 0, 100, 5)), "ok", 0, 100, 5);
    check_runs("the worst verdict counts, with medians of all",
               json_pack("[o, o, o]", run("ok", 0, 100, 5), run("broken", 3, 300, 9), run("ok", 0, 200, 7)),
               "broken", 3, 200, 7);
    check_runs("of equal verdicts the middle one stands for all",
               json_pack("[o, o, o]", run("oversold-as-expected", 30, 3, 1),
                         run("oversold-as-expected", 10, 1, 2), run("oversold-as-expected", 20, 2, 3)),
               "oversold-as-expected", 20, 2, 2);
    check_runs("an even number of runs has its median in between",
               json_pack("[o, o]", run("ok", 0, 100, 4), run("ok", 0, 201, 6)), "ok", 0, 150.5, 5);
    check_runs("caught once is not always caught",
               json_pack("[o, o]", run("oversold-as-expected", 30, 1, 1), run("not-caught", 0, 1, 1)),
               "not-caught", 0, 1, 1);
}

static void test_the_spread_of_several_runs(void **state)
{
    json_auto_t *runs = json_pack("[o, o, o]", run("ok", 0, 300, 5), run("ok", 0, 100, 9),
                                  run("ok", 0, 200, 7));
    json_auto_t *row = row_of_runs(runs), *expected = json_pack("{s:f, s:f}", "least", 100.0, "most", 300.0);
    assert_true(json_equal(json_object_get(row, "orders_per_s_spread"), expected));
    json_auto_t *none = json_pack("[{s:s, s:n}]", "verdict", "unavailable", "orders_per_s");
    json_auto_t *unavailable = row_of_runs(none);
    assert_true(json_is_null(json_object_get(unavailable, "orders_per_s_spread")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_add_up),
        cmocka_unit_test(test_what_is_no_result_is_refused),
        cmocka_unit_test(test_answers_against_orders),
        cmocka_unit_test(test_a_row),
        cmocka_unit_test(test_a_throughput_that_was_sold_out),
        cmocka_unit_test(test_a_stock_that_its_kind_cannot_have),
        cmocka_unit_test(test_an_unavailable_row_has_every_figure),
        cmocka_unit_test(test_strategies_that_cannot_be_read),
        cmocka_unit_test(test_several_runs),
        cmocka_unit_test(test_the_spread_of_several_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
