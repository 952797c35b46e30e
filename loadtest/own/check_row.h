/* Compares the answers, the stock and the orders of one run of `loadtest check`. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_CHECK_ROW_H
#define OVERSELL_LOADTEST_OWN_CHECK_ROW_H

#include "loadtest/own/shop_database.h"
#include "loadtest/own/shop_load.h"
#include "loadtest/report/table.h"
#include "loadtest/stats/verdict.h"

/* Everything in units. */
struct check_counts {
    int64_t sold;     /* in the database, in this run */
    int64_t left;     /* in stock at the end */
    int64_t oversold; /* beyond the stock at the start */
    int64_t drift;    /* sold − (stock at the start − left) */
    int64_t lost;     /* acknowledged with 2xx and not sold */
    int64_t
        unacknowledged; /* sold, and no answer can have been meant: neither 2xx, nor an error, nor silence */
    const char *broken; /* SQL of the first invariant that is not true; NULL: none */
};

/* Compares the stock before and after a run with its answers: of ACKNOWLEDGED requests, and of UNCLEAR ones, which may have sold. */
struct check_counts check_counts_of(const struct shop_description *description,
                                    const struct shop_stock *before, const struct shop_stock *after,
                                    int64_t acknowledged, int64_t unclear);
/* VERDICT_OVERSOLD before VERDICT_DRIFT, VERDICT_INVARIANT, VERDICT_ANSWERS_LOST and VERDICT_CLEAN. */
enum verdict check_verdict(const struct check_counts *counts);

/* The row of run NUMBER; NULL when out of memory. */
json_t *check_row_new(int64_t number, const struct check_counts *counts, const struct shop_answers *answers);

extern const struct result_kind check_result;

/* The pictures of a report; see struct result_kind. */
json_t *check_charts(const json_t *document);

#endif
