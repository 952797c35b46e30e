/* Waits until a fault run has come to rest, and reads the orders that exist, for the comparison with the answers that clients got. */
#include "loadtest/faults/checker/checker.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/wait_note.h"
#include "loadtest/faults/checker/judge.h"

#define SETTLE_MS 60000 /* the other writers notice a dead writer within 5 s */
#define POLL_MS 15

/* The columns of these two are described in judge.h. */
static const struct statement ST_ORDERS = {
    "fault_orders",
    "SELECT l.product_id, o.id, coalesce(o.idempotency_key, ''), o.status = 'pending', l.stock_seen, "
    "coalesce((extract(epoch FROM t.committed_at) * 1000000)::bigint, 0) FROM order_line l "
    "JOIN orders o ON o.id = l.order_id LEFT JOIN order_times t ON t.order_id = l.order_id "
    "WHERE l.product_id BETWEEN $1 AND $2",
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

/* An audit that a service refuses is a wrong answer. *RET_NOTHING: no accepted order is still to be written to a product whose stock was
 * replaced. For these products all_written is not enough, because orders that ran concurrently with the change may be for either stock. */
static bool nothing_to_come(struct fault_testbed *testbed, struct fault_history *history, int64_t first,
                            size_t count, struct fault_counts *counts, bool *ret_nothing)
{
    *ret_nothing = true;
    for (size_t i = 0; i < count && *ret_nothing; i++) {
        struct books books = {0};
        if (history->changes[i].ended_us == 0)
            continue;
        if (!service_client_audit(testbed->base.clients[0], first + (int64_t)i, &books)) {
            if (interrupted())
                return false;
            fault_history_oddity(history, service_client_error(testbed->base.clients[0]));
            counts[i].wrong = 1; /* however often it is asked */
            return true;
        }
        *ret_nothing = books.in_flight == 0;
    }
    return true;
}

/* Accepted orders may still be written; if they were lost, the wait ends at its deadline. */
static bool settle(struct fault_testbed *testbed, struct fault_history *history, int64_t first, size_t count,
                   struct fault_counts *counts)
{
    int64_t end_us = monotonic_us() + (int64_t)SETTLE_MS * 1000;
    bool rests = false, written = false, arrived = false;
    struct wait_note note = {0};
    while (!(rests && written && arrived) && monotonic_us() < end_us) {
        AUTO_RESULT rows = ask(testbed, &ST_BUSY, 0, 0);
        if (!rows || !all_written(testbed, history, first, count, &written) ||
            !nothing_to_come(testbed, history, first, count, counts, &arrived) ||
            !sleep_unless_interrupted(POLL_MS))
            return false;
        rests = db_cell_number(rows, 0, 0) == 0;
        wait_note(&note, "%s, at most %d s",
                  !rests     ? "sessions of the services that are busy in PostgreSQL"
                  : !written ? "acknowledged orders that are not in the database"
                             : "accepted orders that are not written yet",
                  SETTLE_MS / 1000);
    }
    if (!rests)
        complain("orders are still under way after %d s", SETTLE_MS / 1000);
    return rests;
}

/* ---- judging ------------------------------------------------------------------------------------------- */

bool fault_check(struct fault_testbed *testbed, struct fault_history *history, int64_t first, size_t count,
                 struct fault_counts *ret_counts)
{
    if (!settle(testbed, history, first, count, ret_counts))
        return false;
    AUTO_RESULT orders = ask(testbed, &ST_ORDERS, first, first + (int64_t)count - 1);
    AUTO_RESULT audit = orders ? ask(testbed, &ST_AUDIT, first, first + (int64_t)count - 1) : NULL;
    return audit && fault_judge(history, &(struct fault_rows){orders, audit, first, count}, ret_counts);
}
