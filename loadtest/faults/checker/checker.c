/* Compares the history of a fault run with the database: the answers that clients got, with the orders that exist. */
#include "loadtest/faults/checker/checker.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/faults/checker/sale_history.h"

#include <stdlib.h>
#include <string.h>

#define SETTLE_MS 60000 /* the other writers notice a dead writer within 5 s */
#define POLL_MS 15

static const struct statement ST_ORDERS = {
    "fault_orders",
    "SELECT l.product_id, o.id, coalesce(o.idempotency_key, ''), o.status = 'pending', l.stock_seen FROM order_line l "
    "JOIN orders o ON o.id = l.order_id WHERE l.product_id BETWEEN $1 AND $2",
    2};
static const struct statement ST_AUDIT = {
    "fault_audit",
    "SELECT p.id, p.initial_count, s.units_left, "
    "       coalesce((SELECT sum(purchase_num) FROM order_item i WHERE i.product_id = p.id), 0),"
    "       (SELECT count(*) FROM order_item i WHERE i.product_id = p.id AND purchase_price * purchase_num <>"
    "               (SELECT amount FROM orders WHERE id = i.order_id)) "
    "FROM product p JOIN product_stock s ON s.product_id = p.id WHERE p.id BETWEEN $1 AND $2",
    2};
static const struct statement ST_COUNTS = {
    "fault_counts",
    "SELECT product_id, count(*) FROM order_line WHERE product_id BETWEEN $1 AND $2 GROUP BY product_id", 2};
static const struct statement ST_BUSY = {
    "fault_busy",
    "SELECT count(*) FROM pg_stat_activity WHERE (application_name LIKE 'oversell orders %' OR application_name = "
    "'oversell writer') AND datname = current_database() AND state <> 'idle'",
    0};
static const struct statement ST_READERS = {
    "fault_readers",
    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'oversell orders %' AND state = 'idle in "
    "transaction'",
    0};

void fault_counts_add(struct fault_counts *sum, const struct fault_counts *counts)
{
    enum { SUMS = offsetof(struct fault_counts, left) / sizeof(int64_t) };
    for (size_t i = 0; i < SUMS; i++)
        ((int64_t *)sum)[i] += ((const int64_t *)counts)[i];
    if (llabs(counts->drift) > llabs(sum->drift))
        sum->drift = counts->drift;
}

/* Runs a statement about the products FIRST to LAST. */
static PGresult *ask(struct fault_testbed *testbed, const struct statement *statement, int64_t first,
                     int64_t last)
{
    return fault_ask(testbed, statement, (const char *const[]){DB_NUMBER(first), DB_NUMBER(last)});
}

int64_t fault_readers(struct fault_testbed *testbed)
{
    AUTO_RESULT rows = ask(testbed, &ST_READERS, 0, 0);
    return rows ? db_cell_number(rows, 0, 0) : -1;
}

/* ---- waiting until nothing is in progress ------------------------------------------------------------------------------------ */

/* *RET_ALL: every product has at least as many orders as were acknowledged. */
static bool all_written(struct fault_testbed *testbed, struct fault_history *history, int64_t first,
                        size_t count, bool *ret_all)
{
    int64_t told[FAULT_STRATEGIES_MAX] = {0};
    AUTO_RESULT rows = ask(testbed, &ST_COUNTS, first, first + (int64_t)count - 1);
    if (!rows)
        return false;
    for (size_t i = history->from; i < history->count; i++)
        told[history->intents[i].strategy] += fault_history_stands(history, &history->intents[i]);
    for (int row = 0; row < PQntuples(rows); row++)
        told[db_cell_number(rows, row, 0) - first] -= db_cell_number(rows, row, 1);
    *ret_all = true;
    for (size_t i = 0; i < count; i++)
        *ret_all &= told[i] <= 0;
    return true;
}

/* *RET_NOTHING: no accepted order is still to be written to a product whose stock was replaced. For these all_written is not
 * enough, because orders that ran concurrently with the change may be for either stock. */
static bool nothing_to_come(struct fault_testbed *testbed, const struct fault_history *history, int64_t first,
                            size_t count, bool *ret_nothing)
{
    *ret_nothing = true;
    for (size_t i = 0; i < count && *ret_nothing; i++) {
        struct books books = {0};
        if (history->changes[i].ended_us == 0)
            continue;
        if (!service_client_audit(testbed->base.clients[0], first + (int64_t)i, &books)) {
            if (!interrupted())
                complain("%s", service_client_error(testbed->base.clients[0]));
            return false;
        }
        *ret_nothing = books.in_flight == 0;
    }
    return true;
}

/* Accepted orders may still be written; if they were lost, the wait ends at its deadline. */
static bool settle(struct fault_testbed *testbed, struct fault_history *history, int64_t first, size_t count)
{
    int64_t end_us = monotonic_us() + (int64_t)SETTLE_MS * 1000;
    bool rests = false, written = false, arrived = false;
    while (!(rests && written && arrived) && monotonic_us() < end_us) {
        AUTO_RESULT rows = ask(testbed, &ST_BUSY, 0, 0);
        if (!rows || !all_written(testbed, history, first, count, &written) ||
            !nothing_to_come(testbed, history, first, count, &arrived) || !sleep_unless_interrupted(POLL_MS))
            return false;
        rests = db_cell_number(rows, 0, 0) == 0;
    }
    if (!rests)
        complain("orders are still under way after %d s", SETTLE_MS / 1000);
    return rests;
}

/* ---- judging ------------------------------------------------------------------------------------------- */

/* What the database has of each intent. */
struct found {
    int orders, kept; /* kept: not rejected afterwards */
    int64_t id;
    int64_t seen; /* the stock that the order read; negative: none */
};

static bool read_orders(struct fault_testbed *testbed, const struct fault_history *history, int64_t first,
                        size_t count, struct found *found, struct fault_counts *all_counts)
{
    AUTO_RESULT rows = ask(testbed, &ST_ORDERS, first, first + (int64_t)count - 1);
    if (!rows)
        return false;
    for (int row = 0; row < PQntuples(rows); row++) {
        size_t at, strategy = (size_t)(db_cell_number(rows, row, 0) - first);
        bool kept = strcmp(PQgetvalue(rows, row, 3), "t") == 0;
        all_counts[strategy].orders += kept;
        if (!fault_history_find(history, PQgetvalue(rows, row, 2), &at) || at < history->from ||
            history->intents[at].strategy != strategy) {
            all_counts[strategy].denied++;
            continue;
        }
        found[at - history->from].orders++;
        found[at - history->from].kept += kept;
        found[at - history->from].id = db_cell_number(rows, row, 1);
        found[at - history->from].seen = PQgetisnull(rows, row, 4) ? -1 : db_cell_number(rows, row, 4);
    }
    return true;
}

static void judge_intent(const struct fault_history *history, const struct intent *intent,
                         const struct found *found, struct fault_counts *counts)
{
    bool created = intent->told == TOLD_CREATED;
    counts->intents++;
    counts->acknowledged += created;
    counts->unclear += intent->told == TOLD_NOTHING;
    counts->refused += intent->told == TOLD_REFUSED;
    counts->lost += (fault_history_stands(history, intent) && found->kept == 0) ||
                    (created && found->kept == 1 && found->id != intent->order_id);
    counts->duplicated += found->orders > 1;
    counts->denied += found->kept > 0 && !intent->doubtful &&
                      (intent->told == TOLD_REFUSED || intent->told == TOLD_SOLD_OUT);
    counts->denied += found->kept > 0 && fault_history_is_deleted(history, intent);
    counts->wrong += intent->told == TOLD_WRONG || intent->hung;
}

static bool read_audit(struct fault_testbed *testbed, int64_t first, size_t count,
                       struct fault_counts *all_counts)
{
    AUTO_RESULT rows = ask(testbed, &ST_AUDIT, first, first + (int64_t)count - 1);
    if (!rows)
        return false;
    for (int row = 0; row < PQntuples(rows); row++) {
        struct fault_counts *counts = &all_counts[db_cell_number(rows, row, 0) - first];
        int64_t initial = db_cell_number(rows, row, 1), left = db_cell_number(rows, row, 2),
                sold = db_cell_number(rows, row, 3);
        int64_t drift = sold - (initial - left);
        counts->left = left;
        counts->amounts_wrong += db_cell_number(rows, row, 4);
        counts->oversold += sold > initial ? sold - initial : 0;
        if (llabs(drift) > llabs(counts->drift))
            counts->drift = drift;
    }
    return true;
}

/* Collects the sales of one strategy that were for *OF, or all of them if OF is NULL. A sale whose client got no answer may have
 * happened at any later time. */
static size_t collect_sales(const struct fault_history *history, const struct found *found, size_t strategy,
                            const enum sale_of *of, struct sale *sales)
{
    size_t sold = 0;
    for (size_t i = 0; i < history->count - history->from; i++) {
        const struct intent *intent = &history->intents[history->from + i];
        if (intent->strategy != strategy || found[i].kept == 0 || found[i].seen < 0 ||
            (of && fault_history_sale(history, intent) != *of))
            continue;
        sales[sold++] = (struct sale){.seen = found[i].seen,
                                      .began_us = intent->began_us,
                                      .ended_us = intent->told == TOLD_CREATED ? intent->ended_us
                                                                               : INT64_MAX};
    }
    return sold;
}

/* After a reset only the orders of the new stock are left. A PUT keeps all orders: those before it and those after it have a
 * history each, and those concurrent with it have none, because they may be of either stock. */
static bool check_histories(const struct fault_history *history, const struct found *found, size_t count,
                            struct fault_counts *all_counts)
{
    size_t intents = history->count - history->from;
    struct sale *sales = malloc((intents + 1) * sizeof *sales);
    if (!sales)
        complain("out of memory");
    for (size_t strategy = 0; sales && strategy < count; strategy++) {
        static const enum sale_of before = SALE_BEFORE, last = SALE_LAST;
        const enum sale_of *const both[] = {&before, &last}, *const all[] = {NULL, NULL};
        bool keeps = history->changes[strategy].keeps_orders;
        for (size_t i = 0; i < (keeps ? 2 : 1); i++) {
            size_t sold = collect_sales(history, found, strategy, keeps ? both[i] : all[i], sales);
            all_counts[strategy].disordered += (int64_t)history_check(sales, sold);
        }
    }
    free(sales);
    return sales != NULL;
}

/* No unit returns to the stock during a sale: after an order was refused as sold out, no later order can succeed. */
static void count_turned_away(const struct fault_history *history, const struct found *found,
                              struct fault_counts *all_counts)
{
    int64_t last_us[FAULT_STRATEGIES_MAX] = {0}; /* when the last sale began */
    for (size_t i = history->from; i < history->count; i++) {
        const struct intent *intent = &history->intents[i];
        if (found[i - history->from].kept > 0 && intent->began_us > last_us[intent->strategy])
            last_us[intent->strategy] = intent->began_us;
    }
    for (size_t i = history->from; i < history->count; i++) {
        const struct intent *intent = &history->intents[i];
        struct fault_counts *counts = &all_counts[intent->strategy];
        if (intent->told == TOLD_SOLD_OUT && fault_history_sale(history, intent) == SALE_LAST)
            counts->turned_away += counts->left >= history->quantity ||
                                   intent->ended_us < last_us[intent->strategy];
    }
}

bool fault_check(struct fault_testbed *testbed, struct fault_history *history, int64_t first, size_t count,
                 struct fault_counts *ret_counts)
{
    size_t intents = history->count - history->from;
    if (!settle(testbed, history, first, count))
        return false;
    struct found *found = calloc(intents + 1, sizeof *found);
    if (!found)
        complain("out of memory");
    bool well = found && read_orders(testbed, history, first, count, found, ret_counts) &&
                read_audit(testbed, first, count, ret_counts);
    for (size_t i = 0; well && i < intents; i++) {
        const struct intent *intent = &history->intents[history->from + i];
        judge_intent(history, intent, &found[i], &ret_counts[intent->strategy]);
    }
    if (well)
        count_turned_away(history, found, ret_counts);
    well = well && check_histories(history, found, count, ret_counts);
    free(found);
    return well;
}
