/* Compares the answers, the stock and the orders of one run of `loadtest check`. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_CHECK_ROW_H
#define OVERSELL_LOADTEST_OWN_CHECK_ROW_H

#include "loadtest/cli/options.h"
#include "loadtest/own/shop_database.h"
#include "loadtest/own/shop_load.h"
#include "loadtest/report/table.h"
#include "loadtest/stats/verdict.h"

enum { CHECK_FAILING_PERCENT = 5 };

/* Everything in units. */
struct check_counts {
    int64_t sold;     /* in the database, in this run */
    int64_t left;     /* in stock at the end */
    int64_t oversold; /* beyond the stock at the start */
    int64_t drift;    /* sold − (stock at the start − left) */
    int64_t lost;     /* acknowledged and not sold */
    /* sold, and no answer can have been meant: neither sold, nor accepted, nor an error, nor silence */
    int64_t unacknowledged;
    bool turned_away;   /* buyers were refused, and the units left at the end were enough for one of them */
    bool failing;       /* more than CHECK_FAILING_PERCENT of the answers say neither sold nor sold out */
    const char *broken; /* SQL of the first invariant that is not true; NULL: none */
};

/* How the requests of a run were answered. */
struct check_answers {
    int64_t acknowledged, refused; /* sold, sold out */
    int64_t accepted; /* for later: it may have sold, and "settled" says that nothing more comes */
    int64_t unclear;  /* none of these, or no answer: it may have sold */
};

/* What all answers of a run mean. */
struct check_answers check_answers_of(const struct shop_answers *answers);
/* The default stock: enough for ORDERS orders of UNITS units, and one unit less than is enough for another one. */
int64_t check_default_stock(int64_t units, int64_t orders);
/* Compares the stock before and after a run with its answers. */
struct check_counts check_counts_of(const struct shop_description *description,
                                    const struct shop_stock *before, const struct shop_stock *after,
                                    const struct check_answers *answers);
/* The first that applies of VERDICT_OVERSOLD, VERDICT_DRIFT, VERDICT_INVARIANT, VERDICT_ANSWERS_LOST, and, if ALLOWED has not its bit,
 * VERDICT_TURNED_AWAY and VERDICT_FAILING; else VERDICT_CLEAN. */
enum verdict check_verdict(const struct check_counts *counts, unsigned allowed);
/* The names of --allow as bits of verdicts. False, having said why on stderr. */
bool check_allowed(const struct texts *names, unsigned *ret_allowed);

/* The row of run NUMBER; NULL when out of memory. */
json_t *check_row_new(int64_t number, const struct check_counts *counts, const struct shop_answers *answers,
                      unsigned allowed);

extern const struct result_kind check_result;

/* The pictures of a report; see struct result_kind. */
json_t *check_charts(const json_t *document);

#endif
