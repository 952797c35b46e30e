/* Compares the history of a fault run with the rows of the database. Pure: any thread may call. */
#ifndef OVERSELL_LOADTEST_FAULTS_CHECKER_JUDGE_H
#define OVERSELL_LOADTEST_FAULTS_CHECKER_JUDGE_H

#include "db/postgres/connection.h"
#include "loadtest/faults/checker/checker.h"

/* What the database has of the products FIRST, FIRST + 1, …, one for each of COUNT strategies, after a cycle. Borrowed. */
struct fault_rows {
    const PGresult *
        orders; /* product, order id, key or "", is it kept ("t" or "f"), the stock that it saw or NULL, when its stock was
                               committed in µs since 1970 or 0 */
    const PGresult *audit; /* product, initial units, units left, units sold, orders with a wrong amount */
    int64_t first;
    size_t count;
};

/* Adds what the intents of this cycle and ROWS say to COUNTS, one for each strategy. False: out of memory, as stderr says. */
bool fault_judge(const struct fault_history *history, const struct fault_rows *rows,
                 struct fault_counts *counts);

#endif
