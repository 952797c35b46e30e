/* How a result of `loadtest compare` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/compare/compare_result.h"

#include "loadtest/cli/options.h"
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
     "holds, or always"},
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

static void print_title(const json_t *document, char *ret_title, size_t size)
{
    const json_t *settings = json_object_get(document, "settings");
    char duration[32];
    size_t used = 0;
    ret_title[0] = 0;
    if (!settings)
        return;
    if (result_number(settings, "requests") > 0)
        used += (size_t)snprintf(
            ret_title, size, "%" PRId64 " orders of %" PRId64 " unit%s for a stock of %" PRId64,
            result_number(settings, "requests"), result_number(settings, "quantity"),
            result_number(settings, "quantity") == 1 ? "" : "s", result_number(settings, "stock"));
    if (result_number(settings, "duration_ms") > 0)
        used += (size_t)snprintf(ret_title + used, size - used, "%s %s of throughput", used ? ", then" : "",
                                 duration_text(result_number(settings, "duration_ms"), duration));
    int64_t connections = result_number(settings, "connections"),
            instances = result_number(settings, "instances");
    used += (size_t)snprintf(ret_title + used, size - used,
                             "; %" PRId64 " connection%s to %" PRId64 " service%s", connections,
                             connections == 1 ? "" : "s", instances, instances == 1 ? "" : "s");
    if (result_number(settings, "repeat") > 1)
        snprintf(ret_title + used, size - used, "; rates and times are medians of %" PRId64 " runs",
                 result_number(settings, "repeat"));
}

/* ---- what a row is ------------------------------------------------------------------------------------- */

static bool has_errors(const json_t *row)
{
    return result_number(row, "errors") > 0;
}

static bool sold_out_early(const json_t *row)
{
    return json_is_true(json_object_get(row, "sold_out_early"));
}

static bool lost_answers(const json_t *row)
{
    return json_is_false(json_object_get(json_object_get(row, "kept"), "answers"));
}

static bool is_one_process(const json_t *row)
{
    return strcmp(result_text(row, "guarantee"), "one-process") == 0;
}

static bool is_not_one_process(const json_t *row)
{
    return !is_one_process(row);
}

static bool is_shown(const json_t *row)
{
    return !is_one_process(row) && json_is_object(json_object_get(row, "shown"));
}

static bool is_not_shown(const json_t *row)
{
    return !is_one_process(row) && !json_is_object(json_object_get(row, "shown"));
}

/* Did the explorer search for the flaw, in vain? Its finding says so. */
static bool was_searched(const json_t *row)
{
    return *result_text(row, "finding");
}

static bool was_not_searched(const json_t *row)
{
    return !was_searched(row);
}

/* For the rows that match, named in front. */
static const struct rule {
    enum verdict verdict;               /* VERDICT_COUNT: any */
    bool (*matches)(const json_t *row); /* in addition to the verdict; NULL: any row */
    enum note_kind kind;
    const char *text;
} RULES[] = {
    {VERDICT_OVERSOLD_AS_EXPECTED, is_not_one_process, NOTE_ADVICE,
     "these oversell, as expected. Let the database check and write in one step, as atomic-decrement "
     "does, or lock the row from the read to the commit, as select-for-update does."},
    {VERDICT_OVERSOLD_AS_EXPECTED, is_one_process, NOTE_ADVICE,
     "correct within one process, but each process has its own mutex. Keep the lock where the stock is: "
     "in the database."},
    {VERDICT_FLAWED, is_one_process, NOTE_ADVICE,
     "no oversell within one process. To see a second process sell the same stock, use --instances 2."},
    {VERDICT_FLAWED, is_shown, NOTE_ADVICE,
     "no oversell under load alone. These fail when a lease expires, a session or connection ends, or a "
     "holder crashes: see the column \"breaks when\"."},
    {VERDICT_FLAWED, is_not_shown, NOTE_ADVICE,
     "no oversell under load alone. These fail when a lease expires, a session or connection ends, or a "
     "holder crashes. To see it, use loadtest explore with --faults expire or --faults crash."},
    {VERDICT_COUNT, has_errors, NOTE_WARNING,
     "some orders failed. See the reason in the service's log, or use fewer --connections."},
    {VERDICT_COUNT, sold_out_early, NOTE_ADVICE,
     "sold out before the throughput phase ended, so there is no rate. Use a shorter --duration, or fewer "
     "units per order."},
    {VERDICT_COUNT, lost_answers, NOTE_WARNING,
     "the orders in the database are not those that the service acknowledged. If no other program orders "
     "this product, this is a bug."},
    {VERDICT_MIXED, NULL, NOTE_WARNING,
     "orders of other strategies changed the product during the run, so there is no result. Use a separate "
     "product (--product)."},
    {VERDICT_NOT_CAUGHT, was_not_searched, NOTE_WARNING,
     "expected to oversell under this load, but did not. Try more --connections or a longer --think-ms."},
    {VERDICT_NOT_CAUGHT, was_searched, NOTE_WARNING,
     "the strategy table declares a flaw, but no schedule showed it. This is a bug: keep the result "
     "(--export-json) and report it."},
    {VERDICT_BROKEN, NULL, NOTE_WARNING,
     "broke its guarantee. This is a bug: keep the result (--export-json) and report it."},
};

/* ---- comparisons --------------------------------------------------------------------------------------- */

static bool add_witness(const json_t *row, struct notes *notes)
{
    int64_t oversold = result_number(row, "oversold"), drift = result_number(row, "drift");
    const char *witness = result_text(row, "witness");
    if (oversold == 0 && drift == 0 && !*witness)
        return true;
    char damage[160];
    if (oversold > 0)
        snprintf(damage, sizeof damage, "sold %" PRId64 " of %" PRId64, result_number(row, "sold"),
                 result_number(row, "stock"));
    else
        snprintf(damage, sizeof damage, "the stock is off by %" PRId64, drift);
    return notes_add(notes, NOTE_WITNESS, "%s: %s%s%s.", result_text(row, "strategy"), damage,
                     *witness ? "; " : "", witness);
}

/* Adds the finding of a row that is broken, or whose flaw no schedule showed. */
static bool add_finding(const json_t *row, struct notes *notes)
{
    const char *finding = result_text(row, "finding");
    return !*finding || notes_add(notes, NOTE_WARNING, "%s: %s.", result_text(row, "strategy"), finding);
}

/* A row that had to be given another load than the rest is not ranked with them, and says why. */
static bool add_slowdown(const json_t *row, struct notes *notes)
{
    if (!json_is_true(json_object_get(row, "slowed_down")))
        return true;
    return notes_add(notes, NOTE_ADVICE,
                     "%s: no oversell at full speed, so the sell-out was repeated with a pause of %" PRId64
                     " ms between read and write.",
                     result_text(row, "strategy"), result_number(row, "think_ms"));
}

static bool matches(const json_t *row, const struct rule *rule)
{
    return (rule->verdict == VERDICT_COUNT || rule->verdict == result_verdict(row)) &&
           (!rule->matches || rule->matches(row));
}

/* Names the rows that match, then says what the rule has to say. */
static bool apply_rule(const json_t *rows, const struct rule *rule, struct notes *notes)
{
    char *names = NULL;
    size_t size, i, count = 0;
    json_t *row;
    FILE *out = open_memstream(&names, &size);
    if (!out)
        return false;
    json_array_foreach(rows, i, row) {
        if (matches(row, rule))
            fprintf(out, "%s%s", count++ ? ", " : "", result_text(row, "strategy"));
    }
    bool well = fclose(out) == 0 && (count == 0 || notes_add(notes, rule->kind, "%s: %s", names, rule->text));
    free(names);
    return well;
}

bool notes_of_compare(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (!add_witness(row, notes))
            return false;
    }
    json_array_foreach(rows, i, row) {
        if (!add_slowdown(row, notes) || !add_finding(row, notes))
            return false;
    }
    for (i = 0; i < sizeof RULES / sizeof RULES[0]; i++)
        if (!apply_rule(rows, &RULES[i], notes))
            return false;
    return notes_add_unavailable(notes, rows) && notes_add_verdicts(notes, rows, "strategy", "strategies");
}

const struct result_kind compare_result = {
    .name = "compare",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("strategy", "verdict", "oversold", "shown.breaks_when", "orders_per_s", "latency_ms.p99"),
    .title = print_title,
    .headline = compare_headline,
    .notes = notes_of_compare,
    .charts = compare_charts,
};
