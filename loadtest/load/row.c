/* A strategy's row of the result: the figures of a measurement as JSON, and several of them as one. */
#include "loadtest/load/row.h"

#include "loadtest/json/members.h"
#include "loadtest/report/result.h"
#include "loadtest/stats/median.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- one measurement ----------------------------------------------------------------------------------- */

/* A number with DECIMALS decimals, or null where there is none. */
static json_t *rounded(double value, int decimals)
{
    double scale = pow(10, decimals);
    return isfinite(value) ? json_real(round(value * scale) / scale) : json_null();
}

static json_t *ratio(double numerator, double denominator)
{
    return rounded(denominator > 0 ? numerator / denominator : NAN, 3);
}

static json_t *times_ms(const struct histogram *histogram)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "p50", rounded(histogram_percentile(histogram, 0.5) * 1e3, 3),
                     "p90", rounded(histogram_percentile(histogram, 0.9) * 1e3, 3), "p99",
                     rounded(histogram_percentile(histogram, 0.99) * 1e3, 3), "max",
                     rounded(histogram_percentile(histogram, 1) * 1e3, 3));
}

json_t *witness_text(const struct books *books)
{
    if (!books->has_witness)
        return json_null();
    return json_sprintf("orders %" PRId64 " and %" PRId64 " both saw %" PRId64 " left",
                        books->witness_orders[0], books->witness_orders[1], books->witness_seen);
}

#define LOAD(key, member) JSON_MEMBER(key, struct phase, load.member, false)
#define ANSWERS(name) LOAD(#name, answers.name)
#define BOOKS(name) JSON_MEMBER(#name, struct phase, books.name, false)

/* Within "answers": what became of the orders that are neither created nor sold out. */
static const struct json_member ANSWER_MEMBERS[] = {
    ANSWERS(created_late), ANSWERS(lock_busy), ANSWERS(conflict),   ANSWERS(overloaded), ANSWERS(lock_lost),
    ANSWERS(unavailable),  ANSWERS(unknown),   ANSWERS(unanswered), ANSWERS(other),      LOAD("slow", slow),
};

static const struct json_member SALE_MEMBERS[] = {
    ANSWERS(requests), ANSWERS(created), ANSWERS(sold_out),    ANSWERS(busy),
    ANSWERS(errors),   BOOKS(left),      BOOKS(sold),          BOOKS(oversold),
    BOOKS(drift),      BOOKS(negative),  BOOKS(amounts_wrong),
};

/* What was ordered and sold in the phase that the row is about. */
static json_t *sales_json(const struct phase *phase)
{
    static const struct json_members ANSWERS_TABLE = JSON_MEMBERS(ANSWER_MEMBERS),
                                     SALE_TABLE = JSON_MEMBERS(SALE_MEMBERS);
    json_t *sales = members_pack(&SALE_TABLE, phase);
    if (json_object_set_new(sales, "answers", members_pack(&ANSWERS_TABLE, phase)) == 0 &&
        json_object_set_new(sales, "witness", witness_text(&phase->books)) == 0)
        return sales;
    json_decref(sales);
    return NULL;
}

/* The same for the short sale with two units per order, and its size. */
static json_t *pairs_json(const struct phase *pairs)
{
    json_t *sales = sales_json(pairs);
    if (sales && json_object_set_new(sales, "stock", json_integer((json_int_t)pairs->stock)) == 0 &&
        json_object_set_new(sales, "quantity", json_integer((json_int_t)pairs->quantity)) == 0)
        return sales;
    json_decref(sales);
    return NULL;
}

/* What was sold over time: units in all, and the units left as the last order of each slot saw them. */
static json_t *sale_json(const struct sale_series *sale)
{
    json_t *sold = json_array(), *left = json_array();
    for (size_t i = 0; i < sale->count; i++) {
        json_array_append_new(sold, json_integer((json_int_t)sale->sold[i]));
        json_array_append_new(left, sale->left[i] == SALE_UNSEEN ? json_null()
                                                                 : json_integer((json_int_t)sale->left[i]));
    }
    return json_pack("{s:f, s:o, s:o}", "slot_ms", (double)sale->slot_us / 1e3, "sold", sold, "left", left);
}

/* A phase's own; null if it did not run. */
static json_t *in_turn(const struct phase *phase)
{
    return phase->ran ? json_boolean(phase->in_turn) : json_null();
}

/* Every row has every figure: null where nothing was measured. */
static bool set_missing_to_null(json_t *row)
{
    static const char *const FIGURES[] = {"requests",
                                          "created",
                                          "sold_out",
                                          "busy",
                                          "errors",
                                          "left",
                                          "sold",
                                          "oversold",
                                          "drift",
                                          "negative",
                                          "orders_per_s",
                                          "latency_ms",
                                          "lock_wait_ms",
                                          "round_trips_per_order",
                                          "lock_round_trips_per_order",
                                          "wake_ups_per_release",
                                          "retries_per_order",
                                          "kept",
                                          "in_turn",
                                          "witness",
                                          "amounts_wrong",
                                          "pairs",
                                          "sale",
                                          "finding"};
    for (size_t i = 0; i < sizeof FIGURES / sizeof FIGURES[0]; i++)
        if (!json_object_get(row, FIGURES[i]) && json_object_set_new(row, FIGURES[i], json_null()) != 0)
            return false;
    return true;
}

static bool stock_kept(const struct phase *phase)
{
    return !phase->ran || (phase->books.oversold == 0 && phase->books.negative == 0);
}

/* Each phase keeps what KEPT says. */
static bool all_kept(const struct measurement *measurement, bool (*kept)(const struct phase *phase))
{
    return kept(&measurement->pairs) && kept(&measurement->sell_out) && kept(&measurement->throughput);
}

static bool books_kept(const struct phase *phase)
{
    return !phase->ran || (phase->books.drift == 0 && (phase->books.balanced || !stock_kept(phase)));
}

static bool answers_kept(const struct phase *phase)
{
    return !phase->ran || phase_answers_match(phase);
}

json_t *row_new(const struct testbed *testbed, const struct plan *plan, const struct subject *subject,
                const struct measurement *measurement)
{
    const struct phase *sell_out = &measurement->sell_out, *throughput = &measurement->throughput;
    const struct phase *sales = sell_out->ran ? sell_out : throughput;
    /* Times are taken where most orders were made. */
    const struct phase *times = throughput->ran ? throughput : sell_out;
    int64_t think_ms = sell_out->ran ? measurement->think_ms : plan->think_ms;
    bool early = measurement_sold_out_early(measurement), rate_known = throughput->ran && !early;

    json_t *row = json_pack(
        "{s:s, s:O, s:O, s:I, s:I, s:s, s:I, s:s?}", "strategy", subject->name, "guarantee",
        json_object_get(subject->cells, "guarantee"), "shown_by", json_object_get(subject->cells, "shown_by"),
        "instances", (json_int_t)testbed->count, "stock", (json_int_t)plan->stock, "verdict",
        verdict_name(measurement->verdict), "think_ms", (json_int_t)think_ms, "reason", subject->reason);
    bool ok = row != NULL;
    if (ok && sales->ran) {
        json_auto_t *figures = sales_json(sales);
        /* The pack steals what is made here, also when it fails. */
        json_auto_t *more = json_pack(
            "{s:{s:b, s:b, s:b}, s:{s:o, s:o}, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kept", "stock",
            all_kept(measurement, stock_kept), "books", all_kept(measurement, books_kept), "answers",
            all_kept(measurement, answers_kept), "in_turn", "sell_out", in_turn(sell_out), "throughput",
            in_turn(throughput), "orders_per_s",
            rounded(rate_known ? (double)throughput->load.window_created / throughput->load.window_s : NAN,
                    1),
            "latency_ms", times_ms(&times->scrape.created), "lock_wait_ms",
            times_ms(&times->scrape.lock_wait), "round_trips_per_order",
            ratio(times->scrape.round_trips, times->scrape.orders), "retries_per_order",
            ratio(times->scrape.tries - times->scrape.orders, times->scrape.orders),
            "lock_round_trips_per_order",
            ratio(times->scrape.lock_round_trips, times->scrape.releases > 0 ? times->scrape.orders : 0),
            "wake_ups_per_release", ratio(times->scrape.wake_ups, times->scrape.releases));
        ok = json_object_update(row, figures) == 0 && json_object_update(row, more) == 0;
    }
    if (measurement->pairs.ran)
        ok = ok && json_object_set_new(row, "pairs", pairs_json(&measurement->pairs)) == 0;
    if (sell_out->ran && sell_out->load.sale.count > 0)
        ok = ok && json_object_set_new(row, "sale", sale_json(&sell_out->load.sale)) == 0;
    if (measurement->finding[0])
        ok = ok && json_object_set_new(row, "finding", json_string(measurement->finding)) == 0;
    /* Told apart, because such a row ran under another load than the rest. */
    if (think_ms > plan->think_ms)
        ok = ok && json_object_set_new(row, "slowed_down", json_true()) == 0;
    if (early)
        ok = ok && json_object_set_new(row, "sold_out_early", json_true()) == 0;
    if (ok && set_missing_to_null(row) && json_object_set(row, "cells", (json_t *)subject->cells) == 0)
        return row;
    json_decref(row);
    return NULL;
}

/* ---- several ------------------------------------------------------------------------------------------- */

/* The member of a member where INNER is given. */
static json_t *member(const json_t *row, const char *outer, const char *inner)
{
    json_t *value = json_object_get(row, outer);
    return inner ? json_object_get(value, inner) : value;
}

/* Fills VALUES with a figure of each run that has it; returns how many have. */
static size_t figures(const json_t *runs, const char *outer, const char *inner, double *ret_values)
{
    size_t i, count = 0;
    json_t *run;
    json_array_foreach(runs, i, run) {
        if (json_is_number(member(run, outer, inner)))
            ret_values[count++] = json_number_value(member(run, outer, inner));
    }
    return count;
}

/* The median of a figure over the runs that have it; null if none has. */
static json_t *median(const json_t *runs, const char *outer, const char *inner)
{
    double values[json_array_size(runs)];
    return rounded(median_of(values, figures(runs, outer, inner, values)), 3);
}

/* The smallest and the largest of a figure over the runs that have it; null if none has. */
static json_t *spread(const json_t *runs, const char *name)
{
    double values[json_array_size(runs)];
    size_t count = figures(runs, name, NULL, values);
    if (count == 0)
        return json_null();
    median_of(values, count); /* sorts them */
    return json_pack("{s:o, s:o}", "least", rounded(values[0], 3), "most", rounded(values[count - 1], 3));
}

/* The run that stands for all: of those with the worst verdict the one whose oversold is the (lower)
 * median. */
static const json_t *representative(const json_t *runs)
{
    enum verdict worst = VERDICT_OK;
    size_t i, j, same = 0;
    json_t *run, *other;
    json_array_foreach(runs, i, run) {
        enum verdict verdict = result_verdict(run);
        if (verdict > worst)
            worst = verdict;
    }
    json_array_foreach(runs, i, run) {
        same += result_verdict(run) == worst;
    }
    json_array_foreach(runs, i, run) {
        if (result_verdict(run) != worst)
            continue;
        /* Its rank: how many of its kind come before it, in order of oversold, then of time. */
        json_int_t oversold = json_integer_value(json_object_get(run, "oversold"));
        size_t rank = 0;
        json_array_foreach(runs, j, other) {
            json_int_t others = json_integer_value(json_object_get(other, "oversold"));
            rank += result_verdict(other) == worst && (others < oversold || (others == oversold && j < i));
        }
        if (rank == (same - 1) / 2)
            return run;
    }
    return json_array_get(runs, 0);
}

json_t *row_of_runs(const json_t *runs)
{
    static const struct {
        const char *outer, *inner;
    } MEDIANS[] = {
        {"orders_per_s", NULL},          {"latency_ms", "p50"},       {"latency_ms", "p90"},
        {"latency_ms", "p99"},           {"latency_ms", "max"},       {"lock_wait_ms", "p50"},
        {"lock_wait_ms", "p90"},         {"lock_wait_ms", "p99"},     {"lock_wait_ms", "max"},
        {"round_trips_per_order", NULL}, {"retries_per_order", NULL}, {"lock_round_trips_per_order", NULL},
        {"wake_ups_per_release", NULL},
    };
    json_t *row = json_deep_copy(representative(runs));
    bool ok = row != NULL;
    for (size_t i = 0; ok && i < sizeof MEDIANS / sizeof MEDIANS[0]; i++) {
        json_t *into = MEDIANS[i].inner ? json_object_get(row, MEDIANS[i].outer) : row;
        const char *key = MEDIANS[i].inner ? MEDIANS[i].inner : MEDIANS[i].outer;
        if (json_object_get(into, key))
            ok = json_object_set_new(into, key, median(runs, MEDIANS[i].outer, MEDIANS[i].inner)) == 0;
    }
    if (ok && json_object_set_new(row, "orders_per_s_spread", spread(runs, "orders_per_s")) == 0 &&
        json_object_set_new(row, "runs", json_integer((json_int_t)json_array_size(runs))) == 0)
        return row;
    json_decref(row);
    return NULL;
}
