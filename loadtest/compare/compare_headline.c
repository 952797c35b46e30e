/* Summarizes a comparison in one sentence: the worst oversell, and the fastest strategy that did not oversell. */
#include "loadtest/compare/compare_result.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>

static double rate_of(const json_t *row)
{
    return json_number_value(json_object_get(row, "orders_per_s"));
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

void compare_headline(const json_t *document, char *ret_headline, size_t size)
{
    const json_t *rows = json_object_get(document, "rows"), *worst = NULL, *fastest = NULL,
                 *failed = find_failed(rows);
    size_t i, held = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (result_number(row, "oversold") > result_number(worst, "oversold"))
            worst = row;
        if (result_verdict(row) != VERDICT_OK)
            continue;
        held++;
        if (!fastest || rate_of(row) > rate_of(fastest))
            fastest = row;
    }
    char rate[NUMBER_MAX];
    size_t used = 0;
    ret_headline[0] = 0;
    if (failed)
        used = (size_t)snprintf(ret_headline, size, "%s is not as expected (%s)",
                                result_text(failed, "strategy"), result_text(failed, "verdict"));
    else if (worst)
        used = (size_t)snprintf(ret_headline, size, "%s sold %" PRId64 " of %" PRId64,
                                result_text(worst, "strategy"), result_number(worst, "sold"),
                                result_number(worst, "stock"));
    else if (held > 0)
        used = (size_t)snprintf(ret_headline, size, "No strategy oversold");
    if (used == 0)
        return;
    if (fastest && rate_of(fastest) > 0)
        used += (size_t)snprintf(ret_headline + used, size - used, "; %s held at %s orders/s",
                                 result_text(fastest, "strategy"), number_text(rate_of(fastest), 0, rate));
    else if (fastest && (worst || failed))
        used += (size_t)snprintf(ret_headline + used, size - used, "; %s sold no more than the stock",
                                 result_text(fastest, "strategy"));
    snprintf(ret_headline + used, size - used, ".");
}
