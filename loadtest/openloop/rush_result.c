/* How a result of `loadtest rush` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/openloop/rush_row.h"

#include "loadtest/cli/options.h"
#include "loadtest/load/sale_notes.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LATE_SHARE 0.01 /* more late arrivals than this, and the figures are the generator's as well */
#define UNSERVED_SHARE                                                                                       \
    0.01 /* more buyers without an answer than this: the slowest hundredth is not among the orders */
#define FLUSHES_MIN 100 /* fewer say nothing of the slowest hundredth */
#define STEADY 10       /* the goal: p99 at most this many medians */

/* clang-format off */
static const struct column COLUMNS[] = {
    STRATEGY_COLUMN,
    {"guarantee", "guarantee", COLUMN_TEXT, 0, SHOW_CSV, 0, "when the strategy prevents oversells"},
    STOCK_KEPT_COLUMN(8),
    BOOKS_KEPT_COLUMN(10),
    {"kept.answers", "answers\ncorrect", COLUMN_MARK, 0, SHOW_ALL, 9, "the orders in the database are exactly those that the service acknowledged"},
    VERDICT_COLUMN,
    {"instances", "services", COLUMN_NUMBER, 0, SHOW_CSV, 0, "number of service processes"},
    {"maximum_per_s", "closed\nloop /s", COLUMN_NUMBER, 0, SHOW_ALL, 7,
     "orders created per second if each connection waits for an answer before its next order"},
    {"rate_per_s", "buyers\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 0, "buyers who arrive per second, at the highest rate of the shape"},
    {"arrivals", "buyers", COLUMN_NUMBER, 0, SHOW_ALL, 11, "buyers who arrived: answered, unanswered, dropped and timed out"},
    {"answered", "answered", COLUMN_NUMBER, 0, SHOW_CSV, 0, "buyers who got an answer"},
    {"created", "created", COLUMN_NUMBER, 0, SHOW_ALL, 0, "orders answered 201, or 202 if the service writes them later"},
    {"sold_out", "sold\nout", COLUMN_NUMBER, 0, SHOW_ALL, 6, "orders answered with \"sold out\""},
    {"busy", "busy", COLUMN_NUMBER, 0, SHOW_ALL, 5, "orders that the client may retry: lock busy, conflict, overloaded, lock lost"},
    {"errors", "errors", COLUMN_NUMBER, 0, SHOW_ALL, 5, "orders with an error, or whose connection broke"},
    {"unanswered", "unanswered", COLUMN_NUMBER, 0, SHOW_CSV, 0, "errors without an answer: the connection broke or could not be opened"},
    {"timed_out", "timed\nout", COLUMN_NUMBER, 0, SHOW_ALL, 2, "buyers who gave up: no answer within --timeout"},
    {"dropped", "dropped", COLUMN_NUMBER, 0, SHOW_ALL, 2, "buyers who arrived when all connections and the backlog were in use"},
    {"late", "late", COLUMN_NUMBER, 0, SHOW_ALL, 4, "buyers whose order the load generator itself sent too late"},
    {"most_waiting", "waiting", COLUMN_NUMBER, 0, SHOW_CSV, 0, "largest number of buyers who waited for a connection at the same time"},
    {"behind", "behind", COLUMN_NUMBER, 0, SHOW_ALL, 13, "buyers who waited for a connection when the last buyer arrived"},
    {"worst_lag_ms", "lag ms", COLUMN_NUMBER, 1, SHOW_CSV, 0, "longest delay of the load generator itself"},
    {"latency_ms.mean", "mean ms", COLUMN_NUMBER, 2, SHOW_CSV, 0, "mean latency of created orders"},
    {"latency_ms.p50", "p50\nms", COLUMN_NUMBER, 1, SHOW_ALL, 0, "half of the created orders took at most this long, counted from the buyer's arrival"},
    {"latency_ms.p90", "p90 ms", COLUMN_NUMBER, 1, SHOW_CSV, 0, "nine of ten created orders took at most this long"},
    {"latency_ms.p99", "p99\nms", COLUMN_NUMBER, 1, SHOW_ALL, 0, "99 of 100 created orders took at most this long"},
    {"latency_ms.p999", "p99.9\nms", COLUMN_NUMBER, 1, SHOW_ALL, 12, "999 of 1,000 created orders took at most this long"},
    {"latency_ms.max", "max\nms", COLUMN_NUMBER, 1, SHOW_ALL, 3, "the slowest created order"},
    {"p99_over_p50", "p99 /\np50", COLUMN_NUMBER, 1, SHOW_ALL, 1, "p99 divided by p50"},
    {"flush_ms.p50", "flush p50 ms", COLUMN_NUMBER, 2, SHOW_CSV, 0, "half of the flushes of the database's disk during the sale took at most this long"},
    {"flush_ms.p99", "flush p99 ms", COLUMN_NUMBER, 2, SHOW_CSV, 0, "99 of 100 flushes took at most this long"},
    {"flush_ms.max", "flush max ms", COLUMN_NUMBER, 2, SHOW_CSV, 0, "the slowest flush"},
    {"stock", "stock", COLUMN_NUMBER, 0, SHOW_CSV, 0, "units in stock at the start, of all products"},
    {"left", "left", COLUMN_NUMBER, 0, SHOW_CSV, 0, "units that the stock still shows"},
    {"sold", "sold", COLUMN_NUMBER, 0, SHOW_CSV, 0, "units in orders"},
    {"oversold", "oversold", COLUMN_NUMBER, 0, SHOW_CSV, 0, "units sold beyond the stock"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_CSV, 0, "sold − (stock − left), of the product with the largest difference"},
    {"think_ms", "think ms", COLUMN_NUMBER, 0, SHOW_CSV, 0, "pause of each order between its read and its write"},
    {"witness", "witness", COLUMN_TEXT, 0, SHOW_CSV, 0, "two orders that cannot both be correct"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0, "why the strategy was not run"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    double percent = json_number_value(json_object_get(settings, "load_percent"));
    int64_t products = result_number(settings, "products"),
            connections = result_number(settings, "connections"),
            instances = result_number(settings, "instances");
    char duration[32], rate[64];
    if (percent > 0)
        snprintf(rate, sizeof rate, "%g %% of each strategy's throughput", percent);
    else
        snprintf(rate, sizeof rate, "%" PRId64 " buyers per second", result_number(settings, "rate"));
    fprintf(out,
            "Open loop: %s for %s, %s, %" PRId64 " product%s; %" PRId64 " connection%s to %" PRId64
            " service%s; latency from the arrival of each buyer",
            rate, duration_text(result_number(settings, "duration_ms"), duration),
            result_text(settings, "shape"), products, products == 1 ? "" : "s", connections,
            connections == 1 ? "" : "s", instances, instances == 1 ? "" : "s");
}

/* ---- notes --------------------------------------------------------------------------------------------- */

/* A count with its commas, as an argument of a format: each call needs its own BUFFER. */
static const char *count_of(const json_t *row, const char *key, char buffer[static NUMBER_MAX])
{
    return number_text((double)result_number(row, key), 0, buffer);
}

static double time_of(const json_t *outcome, const char *key)
{
    return json_number_value(json_object_get(json_object_get(outcome, "latency_ms"), key));
}

/* "spike: 900 buyers: created 600 (p50 3.1 ms, p99 40.2, max 60.0), sold-out 300 (…), 12 dropped". */
static void add_phase(const json_t *row, const json_t *phase, struct notes *notes)
{
    size_t i;
    json_t *outcome;
    char number[NUMBER_MAX];
    notes_add(notes, NOTE_ADVICE, "%s, %s: %s buyers", result_text(row, "strategy"),
              result_text(phase, "phase"), count_of(phase, "arrivals", number));
    json_array_foreach(json_object_get(phase, "outcomes"), i, outcome) {
        notes_append(notes, "%s %s %s (p50 %.1f ms, p99 %.1f, max %.1f)", i ? "," : ":",
                     result_text(outcome, "outcome"), count_of(outcome, "count", number),
                     time_of(outcome, "p50"), time_of(outcome, "p99"), time_of(outcome, "max"));
    }
    static const struct {
        const char *key, *words;
    } LOST[] = {{"unanswered", "unanswered"}, {"dropped", "dropped"}, {"timed_out", "timed out"}};
    for (i = 0; i < sizeof LOST / sizeof LOST[0]; i++)
        if (result_number(phase, LOST[i].key) > 0)
            notes_append(notes, ", %s %s", count_of(phase, LOST[i].key, number), LOST[i].words);
    notes_append(notes, ".");
}

static void add_warnings(const json_t *row, int64_t late_ms, struct notes *notes)
{
    int64_t arrivals = result_number(row, "arrivals"), late = result_number(row, "late");
    const char *strategy = result_text(row, "strategy");
    char some[NUMBER_MAX], all[NUMBER_MAX];
    count_of(row, "arrivals", all);
    if ((double)late > LATE_SHARE * (double)arrivals)
        notes_add(
            notes, NOTE_WARNING,
            "%s: the load generator was too slow: it sent %s of %s orders more than %" PRId64
            " ms late (%.0f ms at most), and the latencies include this. Use a quieter machine or a lower rate.",
            strategy, count_of(row, "late", some), all, late_ms,
            json_number_value(json_object_get(row, "worst_lag_ms")));
    if (result_number(row, "behind") > 0)
        notes_add(notes, NOTE_WARNING,
                  "%s fell behind: %s buyers still waited for a connection when the last buyer arrived. "
                  "It cannot sustain this rate, so the wait grows with the length of the sale.",
                  strategy, count_of(row, "behind", some));
    if (result_number(row, "dropped") > 0)
        notes_add(notes, NOTE_WARNING,
                  "%s: %s of %s buyers were dropped, because all connections and the backlog were in use. "
                  "The percentiles do not include them.",
                  strategy, count_of(row, "dropped", some), all);
    if (result_number(row, "timed_out") > 0)
        notes_add(notes, NOTE_WARNING,
                  "%s: %s of %s buyers gave up. The percentiles do not include them, "
                  "so the true delay is longer.",
                  strategy, count_of(row, "timed_out", some), all);
}

/* Where a strategy stands to the goal for the tail. One that fell behind has a median as bad as its tail, and so no tail. */
enum standing { REACHED, MISSED, FELL_BEHIND, STANDINGS, NOT_RANKED = STANDINGS };

static enum standing standing_of(const json_t *row)
{
    const json_t *ratio = json_object_get(row, "p99_over_p50");
    if (!json_is_number(ratio))
        return NOT_RANKED;
    if (result_number(row, "behind") > 0)
        return FELL_BEHIND;
    return json_number_value(ratio) <= STEADY ? REACHED : MISSED;
}

static void add_steadiness(const json_t *rows, struct notes *notes)
{
    static const char *const WORDS[STANDINGS] = {
        [REACHED] = "Reached", [MISSED] = "Missed", [FELL_BEHIND] = "Fell behind"};
    size_t i, ranked = 0;
    json_t *row;
    for (int standing = 0; standing < STANDINGS; standing++) {
        size_t count = 0;
        json_array_foreach(rows, i, row) {
            if (standing_of(row) != (enum standing)standing)
                continue;
            if (ranked++ == 0)
                notes_add(notes, NOTE_ADVICE,
                          "Goal: the p99 of created orders is at most %d times their median.", STEADY);
            if (count++ == 0)
                notes_append(notes, " %s: %s", WORDS[standing], result_text(row, "strategy"));
            else
                notes_append(notes, ", %s", result_text(row, "strategy"));
        }
        if (count > 0)
            notes_append(notes, ".");
    }
}

/* One line: how long a flush of the same disk took during each sale. */
static void add_flushes(const json_t *rows, struct notes *notes)
{
    size_t i, count = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        const json_t *flush = json_object_get(row, "flush_ms");
        if (!flush)
            continue;
        if (count++ == 0)
            notes_add(notes, NOTE_ADVICE,
                      "Flushes of the database's disk during the sale (%d KiB each, one every %d ms): ",
                      FLUSH_BYTES / 1024, FLUSH_EVERY_MS);
        notes_append(notes, "%s%s p50 %.1f ms, p99 %.1f, max %.1f", count > 1 ? "; " : "",
                     result_text(row, "strategy"), json_number_value(json_object_get(flush, "p50")),
                     json_number_value(json_object_get(flush, "p99")),
                     json_number_value(json_object_get(flush, "max")));
    }
    if (count > 0)
        notes_append(notes, ".");
}

/* Why a strategy missed the goal, as far as the probe shows it. A flush, or a late wake-up, is a possible reason if its own p99
 * is at least half of the orders'. A flush ends with a wake-up, so it must also be twice as slow as one. Processor time that a
 * hypervisor withheld is one if it was more than LOAD_PERCENT (0: unknown) of the maximum leaves free, so that a queue grew. If all
 * of this fails, the load generator's own longest delay is added, where it is at least half of the orders' p99. */
static void add_reason(const json_t *row, double load_percent, struct notes *notes)
{
    const json_t *flush = json_object_get(row, "flush_ms");
    if (!flush || standing_of(row) != MISSED)
        return;
    const char *strategy = result_text(row, "strategy");
    double orders = time_of(row, "p99"), flushes = json_number_value(json_object_get(flush, "p99")),
           wakeup = json_number_value(json_object_get(flush, "wakeup_p99"));
    double stolen = json_number_value(
        json_object_get(json_object_get(row, "stolen_percent"), "worst_second"));
    double lag = json_number_value(json_object_get(row, "worst_lag_ms"));
    char late[80] = "";
    if (lag >= orders / 2)
        snprintf(late, sizeof late, " The load generator itself was up to %.1f ms late.", lag);
    if (result_number(flush, "count") < FLUSHES_MIN)
        notes_add(notes, NOTE_ADVICE,
                  "%s: only %" PRId64
                  " flushes were measured, too few to explain the p99. Use a longer --duration.",
                  strategy, result_number(flush, "count"));
    else if (flushes >= orders / 2 && flushes >= wakeup * 2)
        notes_add(
            notes, NOTE_ADVICE,
            "%s: the disk can explain the p99 of %.1f ms: 1 %% of the flushes took longer than %.1f ms.",
            strategy, orders, flushes);
    else if (wakeup >= orders / 2)
        notes_add(
            notes, NOTE_ADVICE,
            "%s: busy processors can explain the p99 of %.1f ms: 1 %% of the wake-ups of a sleeping thread were "
            "more than %.1f ms late. 99 %% of the flushes took at most %.1f ms.",
            strategy, orders, wakeup, flushes);
    else if (load_percent > 0 && stolen > 0 && stolen >= 100 - load_percent)
        notes_add(
            notes, NOTE_ADVICE,
            "%s: the hypervisor can explain the p99 of %.1f ms: in the worst second it withheld %.0f %% of the "
            "processor time, and the load of %.0f %% leaves %.0f %% free. 99 %% of the flushes took at most %.1f ms.",
            strategy, orders, stolen, load_percent, fmax(0, 100 - load_percent), flushes);
    else
        notes_add(
            notes, NOTE_ADVICE,
            "%s: the disk alone does not explain the p99 of %.1f ms, because 99 %% of the flushes took at most %.1f ms.%s",
            strategy, orders, flushes, late);
}

/* What the table does not say already. */
static bool has_details(const json_t *row)
{
    return json_array_size(json_object_get(row, "phases")) > 1 ||
           json_array_size(json_object_get(row, "outcomes")) > 1;
}

/* The buyers without an answer, if they are so many that the percentiles do not describe the sale; otherwise 0. */
static int64_t unserved(const json_t *row)
{
    int64_t arrivals = result_number(row, "arrivals"), left = arrivals - result_number(row, "answered");
    return (double)left > UNSERVED_SHARE * (double)arrivals ? left : 0;
}

/* A sale that left buyers without an answer is worse than any that did not, whatever its percentiles say. */
static bool is_worse(const json_t *row, const json_t *other)
{
    if (unserved(row) != unserved(other))
        return unserved(row) > unserved(other);
    return time_of(row, "p99") > time_of(other, "p99");
}

/* The end of a headline that names the buyers whom WORST left without an answer. */
static void print_unserved(const json_t *best, const json_t *worst, FILE *out)
{
    char left[NUMBER_MAX], arrivals[NUMBER_MAX], time[NUMBER_MAX];
    fprintf(out, "%s left %s of %s buyers without an answer", result_text(worst, "strategy"),
            number_text((double)unserved(worst), 0, left), count_of(worst, "arrivals", arrivals));
    if (best != worst && unserved(best) > 0)
        fprintf(out, "; %s left %s without an answer.", result_text(best, "strategy"),
                number_text((double)unserved(best), 0, left));
    else if (time_of(best, "p99") > 0)
        fprintf(out, "; 99 of 100 %s within %s ms%s%s.",
                best == worst ? "created orders were answered" : "buyers had their order",
                number_text(time_of(best, "p99"), 1, time), best == worst ? "" : " with ",
                best == worst ? "" : result_text(best, "strategy"));
    else
        fputs(".", out);
}

/* Did the service answer before PostgreSQL had the orders (202)? */
static bool answered_early(const json_t *row)
{
    size_t i;
    const json_t *outcome;
    json_array_foreach(json_object_get(row, "outcomes"), i, outcome) {
        if (strcmp(result_text(outcome, "outcome"), "accepted") == 0)
            return true;
    }
    return false;
}

static void print_headline(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows"), *best = NULL, *worst = NULL, *oversold = NULL;
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (result_number(row, "oversold") > 0 && !oversold)
            oversold = row;
        if (unserved(row) == 0 && !json_is_number(json_object_get(json_object_get(row, "latency_ms"), "p99")))
            continue;
        best = !best || is_worse(best, row) ? row : best;
        worst = !worst || is_worse(row, worst) ? row : worst;
    }
    char few[NUMBER_MAX], many[NUMBER_MAX];
    if (oversold)
        fprintf(out, "%s sold %s units beyond the stock. ", result_text(oversold, "strategy"),
                count_of(oversold, "oversold", few));
    if (worst && unserved(worst) > 0)
        print_unserved(best, worst, out);
    else if (best && best == worst)
        fprintf(out, "%s: half of the buyers had their order within %s ms, 99 of 100 within %s ms.",
                result_text(best, "strategy"), number_text(time_of(best, "p50"), 1, few),
                number_text(time_of(best, "p99"), 1, many));
    else if (best)
        fprintf(out, "99 of 100 buyers had their order within %s ms with %s, and within %s ms with %s.",
                number_text(time_of(best, "p99"), 1, few), result_text(best, "strategy"),
                number_text(time_of(worst, "p99"), 1, many), result_text(worst, "strategy"));
    if (answered_early(best))
        fprintf(out, " %s answered before PostgreSQL had the orders.", result_text(best, "strategy"));
}

static void add_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    int64_t late_ms = result_number(json_object_get(document, "settings"), "late_ms");
    size_t i, j;
    json_t *row, *phase;
    json_array_foreach(rows, i, row) {
        json_array_foreach(json_object_get(row, "phases"), j, phase) {
            if (has_details(row))
                add_phase(row, phase, notes);
        }
    }
    json_array_foreach(rows, i, row) {
        add_warnings(row, late_ms, notes);
    }
    const json_t *settings = json_object_get(document, "settings");
    /* In a flash sale the percentiles are those of three sales in one. */
    bool flat = strcmp(result_text(settings, "shape"), "flat") == 0;
    double load_percent = result_number(settings, "rate") > 0
                              ? 0
                              : json_number_value(json_object_get(settings, "load_percent"));
    add_flushes(rows, notes);
    if (flat)
        add_steadiness(rows, notes);
    json_array_foreach(rows, i, row) {
        if (flat)
            add_reason(row, load_percent, notes);
    }
    sale_notes(document, notes);
}

const struct result_kind rush_result = {
    .name = "rush",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("strategy", "verdict", "rate_per_s", "created", "latency_ms.p50", "latency_ms.p99",
                "p99_over_p50", "timed_out", "dropped"),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .charts = rush_charts,
};
