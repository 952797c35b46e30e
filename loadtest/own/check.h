/* `loadtest check`: what one sale of a user's service came to. */
#ifndef OVERSELL_LOADTEST_OWN_CHECK_H
#define OVERSELL_LOADTEST_OWN_CHECK_H

#include "loadtest/own/shop_load.h"
#include "loadtest/report/table.h"

/* From the best to the worst; a row's member "verdict" has the name. */
enum check_verdict {
    CHECK_CLEAN,
    CHECK_ANSWERS_LOST, /* an order without an answer that says so, or an answer without an order */
    CHECK_INVARIANT,    /* a statement of the description's invariant is not true */
    CHECK_DRIFT,        /* the units left and the units sold do not add up to the stock */
    CHECK_OVERSOLD,
    CHECK_VERDICTS
};

const char *check_verdict_name(enum check_verdict verdict);

struct check_sale {
    int64_t stock, left, sold; /* units: when the sale began, and when it was over */
    int64_t units;             /* that a request orders */
    size_t broken;             /* statements of the invariant that are not true */
    const char *broken_sql;    /* the first of them; borrowed */
    struct shop_counts counts;
};

/* Figures of a sale. Orders: those in the database; UNACKNOWLEDGED: orders that no client knows of, even if each request without an answer was
 * placed; LOST: acknowledged units that are not in the database. */
int64_t check_oversold(const struct check_sale *sale);
int64_t check_drift(const struct check_sale *sale);
int64_t check_lost(const struct check_sale *sale);
int64_t check_unacknowledged(const struct check_sale *sale);
enum check_verdict check_verdict_of(const struct check_sale *sale);

/* A row of the result, for run number RUN; NULL: out of memory. */
json_t *check_row(const struct check_sale *sale, int64_t run);

extern const struct result_kind check_result;

/* Writes the document, a result of check, as JUnit XML, one test case for each run. False, having said why on stderr. */
bool check_write_junit(const json_t *document, const char *path);

#endif
