/* Judges one sale of a user's service, and makes its row of the result. */
#include "loadtest/own/check.h"

#include <math.h>

static const char *const NAMES[CHECK_VERDICTS] = {
    [CHECK_CLEAN] = "clean", [CHECK_ANSWERS_LOST] = "answers-lost", [CHECK_INVARIANT] = "invariant-broken",
    [CHECK_DRIFT] = "drift", [CHECK_OVERSOLD] = "oversold",
};

const char *check_verdict_name(enum check_verdict verdict)
{
    return NAMES[verdict];
}

static int64_t above_zero(int64_t value)
{
    return value > 0 ? value : 0;
}

int64_t check_oversold(const struct check_sale *sale)
{
    return above_zero(sale->sold - sale->stock);
}

int64_t check_drift(const struct check_sale *sale)
{
    return sale->sold - (sale->stock - sale->left);
}

/* Units, not orders: an order that was stored with fewer units than it ordered has lost something as well. */
int64_t check_lost(const struct check_sale *sale)
{
    return above_zero(sale->counts.sold * sale->units - sale->sold);
}

int64_t check_unacknowledged(const struct check_sale *sale)
{
    return above_zero(sale->sold - (sale->counts.sold + sale->counts.unanswered) * sale->units);
}

enum check_verdict check_verdict_of(const struct check_sale *sale)
{
    if (check_oversold(sale) > 0)
        return CHECK_OVERSOLD;
    if (check_drift(sale) != 0)
        return CHECK_DRIFT;
    if (sale->broken > 0)
        return CHECK_INVARIANT;
    return check_lost(sale) > 0 || check_unacknowledged(sale) > 0 ? CHECK_ANSWERS_LOST : CHECK_CLEAN;
}

static json_t *rounded(double value)
{
    return json_real(round(value * 1000) / 1000);
}

static json_t *percentile_ms(const struct hdr *times, double p)
{
    int64_t us = hdr_percentile(times, p);
    return us < 0 ? json_null() : rounded((double)us / 1000);
}

/* {"200": 100, "409": 300} */
static json_t *statuses_json(const struct shop_counts *counts)
{
    json_t *statuses = json_object();
    for (int status = 0; status < SHOP_STATUSES; status++) {
        char name[16];
        snprintf(name, sizeof name, "%d", status);
        if (counts->statuses[status] > 0)
            json_object_set_new(statuses, name, json_integer((json_int_t)counts->statuses[status]));
    }
    return statuses;
}

json_t *check_row(const struct check_sale *sale, int64_t run)
{
    const struct shop_counts *counts = &sale->counts;
    enum check_verdict verdict = check_verdict_of(sale);
    json_t *row = json_pack(
        "{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:{s:o, s:o}, s:o}",
        "run", (json_int_t)run, "verdict", check_verdict_name(verdict), "stock", (json_int_t)sale->stock,
        "left", (json_int_t)sale->left, "sold", (json_int_t)sale->sold, "oversold",
        (json_int_t)check_oversold(sale), "drift", (json_int_t)check_drift(sale), "lost",
        (json_int_t)check_lost(sale), "unacknowledged", (json_int_t)check_unacknowledged(sale), "created",
        (json_int_t)counts->sold, "sold_out", (json_int_t)counts->sold_out, "other",
        (json_int_t)counts->other, "unanswered", (json_int_t)counts->unanswered, "broken",
        (json_int_t)sale->broken, "statuses", statuses_json(counts), "latency_ms", "p50",
        percentile_ms(&counts->times, 0.5), "p99", percentile_ms(&counts->times, 0.99), "orders_per_s",
        rounded(counts->seconds > 0 ? (double)counts->sold / counts->seconds : 0));
    bool well = row != NULL;
    if (counts->odd.status || counts->odd.text[0]) {
        /* The text may be cut inside a character. */
        json_t *text = json_string(counts->odd.text);
        well = well &&
               json_object_set_new(row, "odd_answer",
                                   json_pack("{s:I, s:o}", "status", (json_int_t)counts->odd.status, "text",
                                             text ? text : json_string("(not valid UTF-8)"))) == 0;
    }
    if (sale->broken_sql)
        well = well && json_object_set_new(row, "broken_sql", json_string(sale->broken_sql)) == 0;
    if (well)
        return row;
    json_decref(row);
    return NULL;
}
