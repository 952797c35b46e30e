/* The verdict of `loadtest compare`, from the line that wrk prints about the answers and from the answer of GET /audit. */
#include "tests/unit/unit.h"

#include "loadtest/load/measure.h"

#include <stdio.h>

/* A sell-out of 100 units in two processes. */
static const struct {
    const char *what, *strategy;
    const char *answers; /* instead of those in ANSWERS */
    const char *audit;   /* instead of those in AUDIT */
    enum verdict verdict;
} RUNS[] = {
    {"all is well", "safe", "{}", "{}", VERDICT_OK},
    {"an order that was not acknowledged", "unsafe", "{\"created\": 99}", "{}", VERDICT_BROKEN},
    {"an order that is not there", "unsafe", "{\"created\": 101}", "{}", VERDICT_BROKEN},
    {"an answer that says unknown explains an order", "lease", "{\"created\": 99, \"unknown\": 1}", "{}",
     VERDICT_FLAWED},
    {"an order without an answer explains one", "lease", "{\"created\": 99, \"answered\": 399}", "{}",
     VERDICT_FLAWED},
    {"a safe row has no such answers", "safe", "{\"created\": 99, \"unknown\": 1}", "{}", VERDICT_BROKEN},
    {"oversold", "safe", "{\"created\": 101}",
     "{\"sold\": 101, \"orders\": 101, \"oversold\": 1, \"drift\": 1}", VERDICT_BROKEN},
    {"oversold, by the units alone", "safe", "{\"created\": 101}",
     "{\"sold\": 101, \"orders\": 101, \"left\": -1}", VERDICT_BROKEN},
    {"a drift below zero", "safe", "{}", "{\"drift\": -1}", VERDICT_BROKEN},
    {"a drift below zero, by the units alone", "lease", "{\"created\": 60, \"sold_out\": 0}",
     "{\"sold\": 60, \"orders\": 60, \"left\": 39}", VERDICT_BROKEN},
    {"a drift above zero, by the units alone", "lease", "{\"created\": 60, \"sold_out\": 0}",
     "{\"sold\": 60, \"orders\": 60, \"left\": 41}", VERDICT_BROKEN},
    {"a negative stock", "safe", "{}", "{\"negative\": 1}", VERDICT_BROKEN},
    {"the parts of the stock do not balance", "safe", "{}", "{\"balanced\": false}", VERDICT_BROKEN},
    {"an amount is wrong", "unsafe", "{}", "{\"amounts_wrong\": 1}", VERDICT_BROKEN},
    {"orders of other strategies", "safe", "{}", "{\"mixed\": true}", VERDICT_MIXED},
    {"a unit is left, and others were refused", "safe", "{\"created\": 99}",
     "{\"sold\": 99, \"orders\": 99, \"left\": 1}", VERDICT_BROKEN},
    {"sold out, and then sold", "lease", "{\"created_late\": 1}", "{}", VERDICT_BROKEN},
    {"a deadlock", "safe", "{\"sold_out\": 299, \"conflict\": 1}", "{}", VERDICT_BROKEN},
    {"a backend is away", "safe", "{\"sold_out\": 299, \"unavailable\": 1}", "{}", VERDICT_BROKEN},
    {"an answer of another kind", "safe", "{\"sold_out\": 299, \"other\": 1}", "{}", VERDICT_BROKEN},
    {"nothing was sold", "unsafe", "{\"created\": 0}", "{\"sold\": 0, \"orders\": 0, \"left\": 100}",
     VERDICT_BROKEN},
    {"the flaw of an unsafe row", "unsafe", "{\"created\": 101}",
     "{\"sold\": 101, \"orders\": 101, \"oversold\": 1, \"drift\": 1, \"balanced\": false}",
     VERDICT_OVERSOLD_AS_EXPECTED},
    {"an unsafe row without its flaw", "unsafe", "{}", "{}", VERDICT_NOT_CAUGHT},
};

static const char ANSWERS[] =
    "{\"sent\":400,\"answered\":400,\"created\":100,\"sold_out\":300,\"lock_busy\":0,\"conflict\":0,\"overloaded\":0,"
    "\"lock_lost\":0,\"unavailable\":0,\"unknown\":0,\"other\":0,\"window_created\":0,\"created_late\":0,"
    "\"elapsed_us\":1,\"window_us\":0,\"socket_connect\":0,\"socket_read\":0,\"socket_write\":0,\"slow\":0}";
static const char AUDIT[] =
    "{\"initial\":100,\"left\":0,\"sold\":100,\"orders\":100,\"oversold\":0,\"drift\":0,\"negative\":0,"
    "\"balanced\":true,\"mixed\":false,\"in_flight\":0,\"amounts_wrong\":0,\"witness\":null}";

/* The members of ALL with those of INSTEAD. */
static json_t *with(const char *all, const char *instead)
{
    json_t *object = json_loads(all, 0, NULL);
    json_auto_t *members = json_loads(instead, 0, NULL);
    assert_non_null(members);
    assert_int_equal(json_object_update_existing(object, members), 0);
    return object;
}

static enum verdict verdict(size_t i)
{
    const struct subject subject = {.name = RUNS[i].strategy,
                                    .tries = 1,
                                    .available = true,
                                    .guarantee = strcmp(RUNS[i].strategy, "safe") == 0 ? GUARANTEE_SAFE
                                                 : strcmp(RUNS[i].strategy, "lease") == 0
                                                     ? GUARANTEE_WHILE_LEASE_HOLDS
                                                     : GUARANTEE_UNSAFE,
                                    .shown_by = strcmp(RUNS[i].strategy, "unsafe") == 0 ? SHOWN_BY_LOAD : 0};
    struct measurement measurement = {
        .sell_out = {.ran = true, .sells_out = true, .stock = 100, .quantity = 1}};
    json_auto_t *answers = with(ANSWERS, RUNS[i].answers), *audit = with(AUDIT, RUNS[i].audit);
    char *line = json_dumps(answers, 0);
    assert_true(load_result_parse(line, &measurement.sell_out.load));
    assert_null(books_parse(audit, &measurement.sell_out.books));
    free(line);
    measurement_judge(&subject, 2, &measurement);
    assert_int_equal(measurement.finding[0] != 0, measurement.verdict == VERDICT_BROKEN);
    return measurement.verdict;
}

static void each_count_reaches_the_verdict(void **state)
{
    for (size_t i = 0; i < COUNT(RUNS); i++)
        if (verdict(i) != RUNS[i].verdict)
            fail_msg("%s: %s", RUNS[i].what, verdict_name(verdict(i)));
}

/* Each phase of a run counts. */
static void every_phase_counts(void **state)
{
    const struct subject subject = {.guarantee = GUARANTEE_SAFE, .tries = 1, .available = true};
    const struct phase ok = {.ran = true,
                             .stock = 100,
                             .quantity = 1,
                             .load.answers = {.requests = 1, .created = 1},
                             .books = {.initial = 100, .sold = 1, .left = 99, .orders = 1, .balanced = true}};
    for (int i = 0; i <= 3; i++) {
        struct measurement all = {.pairs = ok, .sell_out = ok, .throughput = ok};
        struct phase *phases[] = {&all.pairs, &all.sell_out, &all.throughput};
        if (i < 3)
            phases[i]->books.left = 98;
        measurement_judge(&subject, 2, &all);
        assert_int_equal(all.verdict, i < 3 ? VERDICT_BROKEN : VERDICT_OK);
    }
}

static void a_wrong_answer_to_a_repeated_key_breaks_every_row(void **state)
{
    const struct subject subject = {
        .guarantee = GUARANTEE_UNSAFE, .shown_by = SHOWN_BY_LOAD, .available = true};
    struct measurement measurement = {.key_finding = "a repeated key"};
    measurement_judge(&subject, 2, &measurement);
    assert_int_equal(measurement.verdict, VERDICT_BROKEN);
    assert_string_equal(measurement.finding, "a repeated key");
}

static void an_audit_that_cannot_be_read(void **state)
{
    struct books books;
    json_auto_t *text = with(AUDIT, "{\"left\": \"0\"}");
    assert_string_equal(books_parse(text, &books), "left");
    json_auto_t *witness = with(AUDIT, "{\"witness\": {\"stock_seen\": 7, \"orders\": [1, 2]}}");
    assert_null(books_parse(witness, &books));
    assert_true(books.has_witness);
    assert_int_equal(books.witness_seen, 7);
    assert_int_equal(books.witness_orders[1], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_count_reaches_the_verdict),
        cmocka_unit_test(every_phase_counts),
        cmocka_unit_test(a_wrong_answer_to_a_repeated_key_breaks_every_row),
        cmocka_unit_test(an_audit_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
