/* How a result of `loadtest compare` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/compare/compare_result.h"

#include "loadtest/cli/options.h"
#include "loadtest/load/sale_notes.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    STRATEGY_COLUMN,
    {"guarantee", "guarantee", COLUMN_TEXT, 0, SHOW_ALL, 13,
     "when the strategy prevents oversells: never, within one process, while the lease or session of its lock "
     "holds, or whatever happens to a lock, a lease or a process"},
    STOCK_KEPT_COLUMN(0),
    BOOKS_KEPT_COLUMN(11),
    {"kept.answers", "answers\ncorrect", COLUMN_MARK, 0, SHOW_ALL, 16, "the orders in the database are exactly those that the service acknowledged"},
    VERDICT_COLUMN,
    {"shown.breaks_when", "breaks when", COLUMN_TEXT, 0, SHOW_ALL, 11, "the event that made the strategy fail, and what was seen"},
    {"instances", "services", COLUMN_NUMBER, 0, SHOW_ALL, 20, "number of service processes"},
    {"stock", "stock", COLUMN_NUMBER, 0, SHOW_CSV, 0, "units in stock at the start"},
    {"requests", "requests", COLUMN_NUMBER, 0, SHOW_CSV, 0, "orders sent"},
    {"created", "created", COLUMN_NUMBER, 0, SHOW_ALL, 8, "orders answered 201"},
    {"sold_out", "sold\nout", COLUMN_NUMBER, 0, SHOW_ALL, 12, "orders answered with \"sold out\""},
    {"busy", "busy", COLUMN_NUMBER, 0, SHOW_ALL, 17, "orders that the client may retry: lock busy, conflict, overloaded, lock lost"},
    {"errors", "errors", COLUMN_NUMBER, 0, SHOW_ALL, 15, "orders with an error or without an answer"},
    {"left", "left", COLUMN_NUMBER, 0, SHOW_ALL, 7, "units that the stock still shows"},
    {"sold", "sold", COLUMN_NUMBER, 0, SHOW_ALL, 6, "units in orders"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 1, "units sold beyond the stock"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 2, "sold − (stock − left): above 0, updates of the stock were lost; below 0, units were lost"},
    {"negative", "negative", COLUMN_NUMBER, 0, SHOW_CSV, 0, "units that the stock shows below zero"},
    {"orders_per_s", "orders\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 3, "orders created per second, with a stock that cannot run out"},
    {"orders_per_s_spread.least", "least orders/s", COLUMN_NUMBER, 0, SHOW_CSV, 0, "orders per second in the slowest run"},
    {"orders_per_s_spread.most", "most orders/s", COLUMN_NUMBER, 0, SHOW_CSV, 0, "orders per second in the fastest run"},
    {"latency_ms.p50", "p50\nms", COLUMN_NUMBER, 1, SHOW_ALL, 5, "half of the created orders took at most this long, by the service's clock"},
    {"latency_ms.p90", "p90 ms", COLUMN_NUMBER, 1, SHOW_CSV, 0, "nine of ten created orders took at most this long"},
    {"latency_ms.p99", "p99\nms", COLUMN_NUMBER, 1, SHOW_ALL, 4, "99 of 100 created orders took at most this long"},
    {"latency_ms.max", "max ms", COLUMN_NUMBER, 1, SHOW_CSV, 0, "the slowest created order"},
    {"lock_wait_ms.p99", "lock wait\np99 ms", COLUMN_NUMBER, 1, SHOW_ALL, 14,
     "99 of 100 orders waited at most this long for their lock outside the database"},
    {"round_trips_per_order", "round\ntrips", COLUMN_NUMBER, 1, SHOW_ALL, 9, "requests to the database per order"},
    {"lock_round_trips_per_order", "lock\ntrips", COLUMN_NUMBER, 1, SHOW_ALL, 12, "requests to the lock's server per order"},
    {"wake_ups_per_release", "wake-\nups", COLUMN_NUMBER, 1, SHOW_ALL, 13, "waiting orders that wake up per release of the lock outside the database"},
    {"retries_per_order", "retries", COLUMN_NUMBER, 2, SHOW_ALL, 10, "retries per order, because another order changed the row first"},
    {"think_ms", "think ms", COLUMN_NUMBER, 0, SHOW_CSV, 0, "pause of each order between its read and its write"},
    {"runs", "runs", COLUMN_NUMBER, 0, SHOW_CSV, 0, "number of runs: the verdict is the worst, the figures are medians"},
    {"shown_by", "shown by", COLUMN_TEXT, 0, SHOW_CSV, 0, "what shows the strategy's flaw"},
    {"witness", "witness", COLUMN_TEXT, 0, SHOW_CSV, 0, "two orders that cannot both be correct"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0, "why the strategy was not run"},
    {"finding", "finding", COLUMN_TEXT, 0, SHOW_CSV, 0, "why the row is broken, or its flaw was not caught"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    char duration[32];
    if (!settings)
        return;
    if (result_number(settings, "requests") > 0)
        fprintf(out, "%" PRId64 " orders of %" PRId64 " unit%s for a stock of %" PRId64,
                result_number(settings, "requests"), result_number(settings, "quantity"),
                result_number(settings, "quantity") == 1 ? "" : "s", result_number(settings, "stock"));
    if (result_number(settings, "duration_ms") > 0)
        fprintf(out, "%s %s of throughput", result_number(settings, "requests") > 0 ? ", then" : "",
                duration_text(result_number(settings, "duration_ms"), duration));
    int64_t connections = result_number(settings, "connections"),
            instances = result_number(settings, "instances");
    fprintf(out, "; %" PRId64 " connection%s to %" PRId64 " service%s", connections,
            connections == 1 ? "" : "s", instances, instances == 1 ? "" : "s");
    if (result_number(settings, "repeat") > 1)
        fprintf(out, "; rates and times are medians of %" PRId64 " runs", result_number(settings, "repeat"));
}

const struct result_kind compare_result = {
    .name = "compare",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("strategy", "verdict", "oversold", "shown.breaks_when", "orders_per_s", "latency_ms.p99"),
    .title = print_title,
    .headline = compare_headline,
    .notes = sale_notes,
    .charts = compare_charts,
};
