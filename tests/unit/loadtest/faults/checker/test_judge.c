/* What the checker of `loadtest faults` makes of the answers that clients got and of the rows in the database: every count that a
 * verdict uses, and the verdict. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "tests/unit/loadtest/faults/checker/rows.h"

#include "loadtest/faults/checker/judge.h"
#include "loadtest/faults/fault.h"

enum { MOST = 6, FIRST = 1000 };

/* One cycle of one product with 10 units at first. The answers are to keys f1-0, f1-1, … in this sequence. */
struct cycle {
    const char *what;
    struct intent intents[MOST];
    /* product, order id, key, is it kept, the stock that it saw, commit */
    const char *orders[MOST][ROW_CELLS];
    const char *audit[ROW_CELLS]; /* product, initial, left, sold, wrong amounts */
    struct sale_change change;
    unsigned expected;
    enum verdict verdict;
    const char *count; /* the one that must be 1, or -1 for "drift"; NULL: none but those of answers */
};

#define CREATED(id, from, to)                                                                                \
    {                                                                                                        \
        .told = TOLD_CREATED, .order_id = (id), .began_us = (from), .ended_us = (to)                         \
    }
#define TOLD(what, from, to)                                                                                 \
    {                                                                                                        \
        .told = (what), .began_us = (from), .ended_us = (to)                                                 \
    }

static const struct cycle CYCLES[] = {
    {"all is well",
     {CREATED(7, 1, 2), CREATED(8, 3, 4)},
     {{"1000", "7", "f1-0", "t", "10"}, {"1000", "8", "f1-1", "t", "9"}},
     {"1000", "10", "8", "2", "0"},
     {0},
     ALL_KEPT,
     VERDICT_OK,
     NULL},
    {"an acknowledged order is missing",
     {CREATED(7, 1, 2), CREATED(8, 3, 4)},
     {{"1000", "7", "f1-0", "t", "10"}},
     {"1000", "10", "9", "1", "0"},
     {0},
     ALL_KEPT,
     VERDICT_BROKEN,
     "lost"},
    {"the order has another id than the answer",
     {CREATED(7, 1, 2)},
     {{"1000", "9", "f1-0", "t", "10"}},
     {"1000", "10", "9", "1", "0"},
     {0},
     ALL_KEPT,
     VERDICT_BROKEN,
     "lost"},
    {"an acknowledged order was rejected later",
     {CREATED(7, 1, 2), CREATED(8, 3, 4)},
     {{"1000", "7", "f1-0", "t", "10"}, {"1000", "8", "f1-1", "f", "9"}},
     {"1000", "10", "9", "1", "0"},
     {0},
     ALL_KEPT,
     VERDICT_BROKEN,
     "lost"},
    {"one key has two orders",
     {CREATED(7, 1, 2)},
     {{"1000", "6", "f1-0", "t", "10"}, {"1000", "7", "f1-0", "t", "9"}},
     {"1000", "10", "8", "2", "0"},
     {0},
     ORDERS_KEPT,
     VERDICT_BROKEN,
     "duplicated"},
    {"a refused order exists",
     {TOLD(TOLD_REFUSED, 1, 2), CREATED(8, 3, 4)},
     {{"1000", "7", "f1-0", "t", "10"}, {"1000", "8", "f1-1", "t", "9"}},
     {"1000", "10", "8", "2", "0"},
     {0},
     ORDERS_KEPT,
     VERDICT_BROKEN,
     "denied"},
    {"an order without a key that a client sent",
     {CREATED(8, 3, 4)},
     {{"1000", "8", "f1-0", "t", "10"}, {"1000", "9", "", "t", "9"}},
     {"1000", "10", "8", "2", "0"},
     {0},
     ORDERS_KEPT,
     VERDICT_BROKEN,
     "denied"},
    {"an order from before a reset is still there",
     {CREATED(7, 1, 2), CREATED(8, 30, 40)},
     {{"1000", "7", "f1-0", "t", "10"}, {"1000", "8", "f1-1", "t", "9"}},
     {"1000", "10", "8", "2", "0"},
     {10, 20, false},
     ORDERS_KEPT,
     VERDICT_BROKEN,
     "denied"},
    {"an answer without a type",
     {TOLD(TOLD_WRONG, 1, 2), CREATED(8, 3, 4)},
     {{"1000", "8", "f1-1", "t", "10"}},
     {"1000", "10", "9", "1", "0"},
     {0},
     ORDERS_KEPT,
     VERDICT_BROKEN,
     "wrong"},
    {"an answer that took too long",
     {{.told = TOLD_NOTHING, .hung = true, .doubtful = true, .began_us = 1, .ended_us = 2}, CREATED(8, 3, 4)},
     {{"1000", "8", "f1-1", "t", "10"}},
     {"1000", "10", "9", "1", "0"},
     {0},
     ORDERS_KEPT,
     VERDICT_BROKEN,
     "wrong"},
    {"two orders saw the same stock",
     {CREATED(7, 1, 5), CREATED(8, 2, 6)},
     {{"1000", "7", "f1-0", "t", "10"}, {"1000", "8", "f1-1", "t", "10"}},
     {"1000", "10", "8", "2", "0"},
     {0},
     ALL_KEPT,
     VERDICT_BROKEN,
     "disordered"},
    {"more is sold than there was",
     {CREATED(7, 1, 2)},
     {{"1000", "7", "f1-0", "t", "10"}},
     {"1000", "10", "-1", "11", "0"},
     {0},
     ALL_KEPT,
     VERDICT_BROKEN,
     "oversold"},
    {"a sale did not lower the stock",
     {CREATED(7, 1, 2)},
     {{"1000", "7", "f1-0", "t", "10"}},
     {"1000", "10", "10", "1", "0"},
     {0},
     ALL_KEPT,
     VERDICT_BROKEN,
     "drift"},
    {"units are gone without a sale",
     {CREATED(7, 1, 2)},
     {{"1000", "7", "f1-0", "t", "10"}},
     {"1000", "10", "8", "1", "0"},
     {0},
     ORDERS_KEPT,
     VERDICT_BROKEN,
     "-drift"},
    {"an amount is wrong",
     {CREATED(7, 1, 2)},
     {{"1000", "7", "f1-0", "t", "10"}},
     {"1000", "10", "9", "1", "1"},
     {0},
     ORDERS_KEPT,
     VERDICT_BROKEN,
     "amounts_wrong"},
    {"sold out, and units are left",
     {CREATED(7, 1, 2), TOLD(TOLD_SOLD_OUT, 3, 4)},
     {{"1000", "7", "f1-0", "t", "10"}},
     {"1000", "10", "9", "1", "0"},
     {0},
     ALL_KEPT,
     VERDICT_BROKEN,
     "turned_away"},
    {"sold out, and a later order got a unit",
     {TOLD(TOLD_SOLD_OUT, 1, 2), CREATED(8, 3, 4)},
     {{"1000", "8", "f1-1", "t", "10"}},
     {"1000", "1", "0", "1", "0"},
     {0},
     ALL_KEPT,
     VERDICT_BROKEN,
     "turned_away"},
    {"a retry that may have sold is no refusal",
     {{.told = TOLD_REFUSED, .doubtful = true, .began_us = 1, .ended_us = 2}, CREATED(8, 3, 4)},
     {{"1000", "7", "f1-0", "t", "10"}, {"1000", "8", "f1-1", "t", "9"}},
     {"1000", "10", "8", "2", "0"},
     {0},
     ALL_KEPT,
     VERDICT_OK,
     NULL},
    {"no answer, and no order",
     {TOLD(TOLD_NOTHING, 1, 2), CREATED(8, 3, 4)},
     {{"1000", "8", "f1-1", "t", "10"}},
     {"1000", "10", "9", "1", "0"},
     {0},
     ALL_KEPT,
     VERDICT_OK,
     NULL},
    {"a reset deletes what was sold before it",
     {CREATED(7, 1, 2), CREATED(8, 30, 40)},
     {{"1000", "8", "f1-1", "t", "10"}},
     {"1000", "10", "9", "1", "0"},
     {10, 20, false},
     ALL_KEPT,
     VERDICT_OK,
     NULL},
};

static size_t filled(const char *const (*rows)[ROW_CELLS])
{
    size_t count = 0;
    while (count < MOST && rows[count][0])
        count++;
    return count;
}

static struct fault_counts judged(const struct cycle *cycle)
{
    struct fault_history history;
    struct fault_counts counts = {0};
    size_t number;
    fault_history_open("f1", &history);
    fault_history_begin_cycle(&history);
    for (size_t i = 0; i < MOST && cycle->intents[i].ended_us > 0; i++) {
        assert_true(fault_history_intend(&history, 0, 0, &number));
        fault_history_told(&history, number, &cycle->intents[i]);
        history.intents[number].began_us = cycle->intents[i].began_us;
    }
    history.changes[0] = cycle->change;
    history.strike = (struct fault_strike){.from_us = 1, .until_us = 1, .instance = -1};
    const char *const(*orders)[ROW_CELLS] = (const char *const(*)[ROW_CELLS])cycle->orders;
    PGresult *order_rows = rows_of(6, orders, filled(orders)),
             *audit = rows_of(5, (const char *const(*)[ROW_CELLS]) & cycle->audit, 1);
    assert_true(fault_judge(&history, &(struct fault_rows){order_rows, audit, FIRST, 1}, &counts));
    PQclear(order_rows);
    PQclear(audit);
    fault_history_close(&history);
    return counts;
}

static void each_count_comes_from_answers_and_rows(void **state)
{
    for (size_t i = 0; i < COUNT(CYCLES); i++) {
        const struct fault_counts counts = judged(&CYCLES[i]);
        const struct {
            const char *name;
            int64_t value;
        } FAULTY[] = {
            {"lost", counts.lost},
            {"duplicated", counts.duplicated},
            {"denied", counts.denied},
            {"wrong", counts.wrong},
            {"disordered", counts.disordered},
            {"oversold", counts.oversold},
            {"drift", counts.drift > 0 ? counts.drift : 0},
            {"-drift", counts.drift < 0 ? -counts.drift : 0},
            {"-drift", counts.gone},
            {"amounts_wrong", counts.amounts_wrong},
            {"turned_away", counts.turned_away},
        };
        for (size_t f = 0; f < COUNT(FAULTY); f++) {
            bool expected = CYCLES[i].count && strcmp(FAULTY[f].name, CYCLES[i].count) == 0;
            if (FAULTY[f].value != expected)
                fail_msg("%s: %s is %d", CYCLES[i].what, FAULTY[f].name, (int)FAULTY[f].value);
        }
    }
}

static void each_count_reaches_the_verdict(void **state)
{
    for (size_t i = 0; i < COUNT(CYCLES); i++) {
        struct fault_subject subject = {
            .strategy = strategy_find("select-for-update"), .expected = CYCLES[i].expected, .cycles = 1};
        const struct fault_counts counts = judged(&CYCLES[i]);
        fault_counts_add(&subject.counts, &counts);
        subject.counts.critical = 1;
        enum verdict verdict = fault_verdict(&faults[0], &subject);
        if (verdict != CYCLES[i].verdict)
            fail_msg("%s: %s", CYCLES[i].what, verdict_name(verdict));
    }
}

static void answers_are_counted(void **state)
{
    const struct cycle cycle = {
        .intents = {CREATED(7, 1, 2), CREATED(8, 3, 4), TOLD(TOLD_REFUSED, 5, 6), TOLD(TOLD_NOTHING, 7, 8)},
        .orders = {{"1000", "7", "f1-0", "t", "10"}, {"1000", "8", "f1-1", "t", "9"}},
        .audit = {"1000", "10", "8", "2", "0"}};
    const struct fault_counts counts = judged(&cycle);
    assert_int_equal(counts.intents, 4);
    assert_int_equal(counts.acknowledged, 2);
    assert_int_equal(counts.refused, 1);
    assert_int_equal(counts.unclear, 1);
    assert_int_equal(counts.orders, 2);
    assert_int_equal(counts.critical, 1);
    assert_int_equal(counts.left, 8);
}

/* A cycle in which units are gone must not be hidden by one in which too many are left. */
static void the_worst_drift_of_all_cycles_stays(void **state)
{
    struct fault_counts sum = {0};
    fault_counts_add(&sum, &(struct fault_counts){.drift = 1});
    fault_counts_add(&sum, &(struct fault_counts){.drift = -2, .lost = 3});
    fault_counts_add(&sum, &(struct fault_counts){.lost = 4});
    assert_int_equal(sum.drift, -2);
    assert_int_equal(sum.lost, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_count_comes_from_answers_and_rows),
        cmocka_unit_test(each_count_reaches_the_verdict),
        cmocka_unit_test(answers_are_counted),
        cmocka_unit_test(the_worst_drift_of_all_cycles_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
