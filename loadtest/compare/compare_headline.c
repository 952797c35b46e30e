/* Summarizes a comparison in one sentence: the worst oversell, and the fastest strategy that did not oversell. Rates are compared at equal
 * durability: a strategy that answers before PostgreSQL has the order is named apart. */
#include "loadtest/compare/compare_result.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double rate_of(const json_t *row)
{
    return json_number_value(json_object_get(row, "orders_per_s"));
}

/* Has PostgreSQL the order before the client has its answer? */
static bool is_written_first(const json_t *row)
{
    return strcmp(result_text(json_object_get(row, "cells"), "stock_kind"), "redis") != 0;
}

/* The row of a failure that the sentence names, NULL if there is none. */
static const json_t *find_failed(const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (verdict_fails(result_verdict(row)))
            return row;
    }
    return NULL;
}

void compare_headline(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows"), *worst = NULL, *fastest = NULL, *early = NULL,
                 *failed = find_failed(rows);
    size_t i, held = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (result_number(row, "oversold") > result_number(worst, "oversold"))
            worst = row;
        if (result_verdict(row) != VERDICT_OK)
            continue;
        held++;
        const json_t **best = is_written_first(row) ? &fastest : &early;
        if (!*best || rate_of(row) > rate_of(*best))
            *best = row;
    }
    char rate[NUMBER_MAX];
    if (failed)
        fprintf(out, "%s is not as expected (%s)", result_text(failed, "strategy"),
                result_text(failed, "verdict"));
    else if (worst)
        fprintf(out, "%s sold %" PRId64 " of %" PRId64, result_text(worst, "strategy"),
                result_number(worst, "sold"), result_number(worst, "stock"));
    else if (held > 0)
        fputs("No strategy oversold", out);
    else
        return;
    bool is_timed = early && rate_of(early) > 0;
    if (fastest && rate_of(fastest) > 0)
        fprintf(out, "; %s held at %s orders/s%s", result_text(fastest, "strategy"),
                number_text(rate_of(fastest), 0, rate),
                is_timed ? ", each in PostgreSQL before its answer" : "");
    else if ((fastest || early) && !is_timed && (worst || failed))
        fprintf(out, "; %s sold no more than the stock", result_text(fastest ? fastest : early, "strategy"));
    if (is_timed)
        fprintf(out, "; %s answered %s orders/s and wrote them later", result_text(early, "strategy"),
                number_text(rate_of(early), 0, rate));
    fputs(".", out);
}
