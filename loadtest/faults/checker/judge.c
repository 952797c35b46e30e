/* Compares the history of a fault run with the rows of the database: the answers that clients got, with the orders that exist. */
#include "loadtest/faults/checker/judge.h"

#include "loadtest/cli/complain.h"
#include "loadtest/faults/checker/sale_history.h"

#include <stdlib.h>
#include <string.h>

void fault_counts_add(struct fault_counts *sum, const struct fault_counts *counts)
{
    enum { SUMS = offsetof(struct fault_counts, left) / sizeof(int64_t) };
    for (size_t i = 0; i < SUMS; i++)
        ((int64_t *)sum)[i] += ((const int64_t *)counts)[i];
    if (llabs(counts->drift) > llabs(sum->drift))
        sum->drift = counts->drift;
}

/* What the database has of each intent. */
struct found {
    int orders, kept; /* kept: not rejected afterwards */
    int64_t id;
    int64_t seen; /* the stock that the order read; negative: none */
    int64_t committed_us;
};

static void read_orders(const struct fault_history *history, const PGresult *rows, int64_t first,
                        struct found *found, struct fault_counts *all_counts)
{
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
        found[at - history->from].committed_us = db_cell_number(rows, row, 5);
    }
}

static void judge_intent(const struct fault_history *history, const struct intent *intent,
                         const struct found *found, struct fault_counts *counts)
{
    bool created = intent->told == TOLD_CREATED;
    counts->intents++;
    counts->critical += fault_history_was_met(history, intent, found->committed_us);
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

static void read_audit(const PGresult *rows, int64_t first, struct fault_counts *all_counts)
{
    for (int row = 0; row < PQntuples(rows); row++) {
        struct fault_counts *counts = &all_counts[db_cell_number(rows, row, 0) - first];
        int64_t initial = db_cell_number(rows, row, 1), left = db_cell_number(rows, row, 2),
                sold = db_cell_number(rows, row, 3);
        int64_t drift = sold - (initial - left);
        counts->left = left;
        counts->gone += drift < 0 ? -drift : 0;
        counts->amounts_wrong += db_cell_number(rows, row, 4);
        counts->oversold += sold > initial ? sold - initial : 0;
        if (llabs(drift) > llabs(counts->drift))
            counts->drift = drift;
    }
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

bool fault_judge(const struct fault_history *history, const struct fault_rows *rows,
                 struct fault_counts *counts)
{
    size_t intents = history->count - history->from;
    struct found *found = calloc(intents + 1, sizeof *found);
    if (!found) {
        complain("out of memory");
        return false;
    }
    read_orders(history, rows->orders, rows->first, found, counts);
    read_audit(rows->audit, rows->first, counts);
    for (size_t i = 0; i < intents; i++) {
        const struct intent *intent = &history->intents[history->from + i];
        judge_intent(history, intent, &found[i], &counts[intent->strategy]);
    }
    count_turned_away(history, found, counts);
    bool ok = check_histories(history, found, rows->count, counts);
    free(found);
    return ok;
}
