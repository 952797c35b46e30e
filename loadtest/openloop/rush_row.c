/* What is kept of a rush: its row of the result, and its latencies as files for hdrplot. */
#include "loadtest/openloop/rush_row.h"

#include "loadtest/cli/complain.h"
#include "loadtest/json/members.h"
#include "loadtest/load/row.h"
#include "loadtest/report/output.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The latencies of one kind of answer, or of those that made an order, over all phases or in one. */
#define ALL_PHASES PHASES_MAX

static void collect(const struct rush *rush, size_t phase, enum answer answer, struct hdr *into)
{
    for (size_t i = 0; i < PHASES_MAX; i++)
        if (phase == ALL_PHASES || phase == i)
            hdr_merge(into, open_latency(&rush->load, i, answer));
}

/* ---- the row ------------------------------------------------------------------------------------------- */

static json_t *ms_at(const struct hdr *hdr, double p)
{
    return hdr->count == 0 ? json_null() : json_real((double)hdr_percentile(hdr, p) / 1e3);
}

static json_t *times_json(const struct hdr *hdr)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "mean",
                     hdr->count == 0 ? json_null() : json_real(round(hdr_mean(hdr)) / 1e3), "p50",
                     ms_at(hdr, 0.5), "p90", ms_at(hdr, 0.9), "p99", ms_at(hdr, 0.99), "p999",
                     ms_at(hdr, 0.999), "max", ms_at(hdr, 1));
}

/* The answers that there were, each with its count and times. */
static json_t *answers_json(const struct rush *rush, size_t phase)
{
    json_t *list = json_array();
    struct hdr *hdr = malloc(sizeof *hdr);
    for (int answer = 0; list && hdr && answer < ANSWER_COUNT; answer++) {
        memset(hdr, 0, sizeof *hdr);
        collect(rush, phase, (enum answer)answer, hdr);
        if (hdr->count == 0)
            continue;
        json_t *item = json_pack("{s:s, s:I, s:o}", "outcome", answer_name((enum answer)answer), "count",
                                 (json_int_t)hdr->count, "latency_ms", times_json(hdr));
        if (json_array_append_new(list, item) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    if (!hdr) {
        json_decref(list);
        list = NULL;
    }
    free(hdr);
    return list;
}

/* What is kept of the whole and of every phase. */
struct counts {
    struct open_counts all;
    int64_t answered, created, busy, errors, timed_out;
};

#define COUNT(key, member) JSON_MEMBER(key, struct counts, member, false)

static const struct json_member COUNTS[] = {COUNT("arrivals", all.scheduled),
                                            COUNT("answered", answered),
                                            COUNT("created", created),
                                            COUNT("sold_out", all.answers[ANSWER_SOLD_OUT]),
                                            COUNT("busy", busy),
                                            COUNT("errors", errors),
                                            COUNT("unanswered", all.unanswered),
                                            COUNT("dropped", all.dropped),
                                            COUNT("timed_out", timed_out),
                                            COUNT("late", all.late)};

static json_t *counts_json(const struct open_counts *counts)
{
    static const struct json_members TABLE = JSON_MEMBERS(COUNTS);
    const int64_t *a = counts->answers;
    const struct counts kept = {
        .all = *counts,
        .answered = open_answered(counts),
        .created = rush_created(counts),
        .busy = a[ANSWER_LOCK_BUSY] + a[ANSWER_CONFLICT] + a[ANSWER_OVERLOADED] + a[ANSWER_LOCK_LOST],
        .errors = a[ANSWER_UNAVAILABLE] + a[ANSWER_UNKNOWN] + a[ANSWER_OTHER] + counts->unanswered,
        .timed_out = counts->timed_out_waiting + counts->timed_out_sent,
    };
    return members_pack(&TABLE, &kept);
}

static json_t *phases_json(const struct rush_plan *plan, const struct rush *rush)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < plan->shape->phase_count; i++) {
        json_t *phase = counts_json(&rush->load.phases[i]);
        if (!phase || json_object_set_new(phase, "phase", json_string(plan->shape->phases[i].name)) != 0 ||
            json_object_set_new(phase, "outcomes", answers_json(rush, i)) != 0 ||
            json_array_append(list, phase) != 0) {
            json_decref(list);
            list = NULL;
        }
        json_decref(phase);
    }
    return list;
}

/* What happened over time: counts up to the end of each slot, without the slots after the last event. */
static json_t *series_json(const struct open_series *series)
{
    json_t *arrived = json_array(), *answered = json_array(), *waiting = json_array();
    size_t used = OPEN_SLOTS_MAX;
    while (used > 0 &&
           series->arrived[used - 1] + series->answered[used - 1] + series->given_up[used - 1] == 0)
        used--;
    int64_t come = 0, served = 0, gone = 0;
    for (size_t i = 0; i < used; i++) {
        come += series->arrived[i];
        served += series->answered[i];
        gone += series->given_up[i];
        json_array_append_new(arrived, json_integer((json_int_t)come));
        json_array_append_new(answered, json_integer((json_int_t)served));
        json_array_append_new(waiting, json_integer((json_int_t)(come - served - gone)));
    }
    return json_pack("{s:f, s:o, s:o, s:o}", "slot_ms", (double)series->slot_us / 1e3, "arrived", arrived,
                     "answered", answered, "waiting", waiting);
}

/* The latencies at these shares of the orders; of the closed loop, whose shares are fewer, null where it did not run. */
static json_t *curve_json(const struct hdr *made, const int64_t *closed_us)
{
    static const double MORE[] = {0.9995, 0.9999, 1};
    json_t *curve = json_array();
    for (size_t i = 0; i < LOAD_PERCENTILES + sizeof MORE / sizeof MORE[0]; i++) {
        bool both = i < LOAD_PERCENTILES;
        double share = both ? load_percentiles[i] : MORE[i - LOAD_PERCENTILES];
        json_t *closed = both && closed_us[i] > 0 ? json_real((double)closed_us[i] / 1e3) : json_null();
        json_array_append_new(curve, json_pack("{s:f, s:o, s:o}", "share", share, "open_ms",
                                               ms_at(made, share), "closed_ms", closed));
    }
    return curve;
}

/* Latency of the orders made, 202 included, and how much worse the worst hundredth has it than the middle. */
static bool set_latency(json_t *row, const struct rush *rush)
{
    struct hdr *made = calloc(1, sizeof *made);
    if (!made)
        return false;
    collect(rush, ALL_PHASES, ANSWER_CREATED, made);
    collect(rush, ALL_PHASES, ANSWER_ACCEPTED, made);
    double p50 = (double)hdr_percentile(made, 0.5), p99 = (double)hdr_percentile(made, 0.99);
    bool ok = json_object_set_new(row, "latency_ms", times_json(made)) == 0 &&
              json_object_set_new(row, "curve", curve_json(made, rush->closed_us)) == 0 &&
              json_object_set_new(row, "over_time", series_json(&rush->load.series)) == 0 &&
              json_object_set_new(row, "p99_over_p50",
                                  p50 > 0 ? json_real(round(p99 / p50 * 100) / 100) : json_null()) == 0;
    free(made);
    return ok;
}

/* What is kept of the whole; NaN: it was not measured. */
struct figures {
    struct rush rush;
    double worst_lag_ms;
};

#define FIGURE(key, member) JSON_MEMBER(key, struct figures, member, false)
#define BOOKS(name) FIGURE(#name, rush.books.name)

static const struct json_member FIGURES[] = {FIGURE("maximum_per_s", rush.maximum),
                                             FIGURE("rate_per_s", rush.rate),
                                             FIGURE("stock", rush.stock),
                                             FIGURE("most_waiting", rush.load.most_waiting),
                                             FIGURE("behind", rush.load.behind),
                                             FIGURE("worst_lag_ms", worst_lag_ms),
                                             FIGURE("elapsed_s", rush.load.elapsed_s),
                                             BOOKS(left),
                                             BOOKS(sold),
                                             BOOKS(oversold),
                                             BOOKS(drift),
                                             BOOKS(negative)};

/* Sets what the probe has measured, if there was one. */
static bool set_flushes(json_t *row, const struct flushes *flushes)
{
    if (flushes->count == 0)
        return true;
    json_auto_t *measured = json_pack(
        "{s:{s:I, s:f, s:f, s:f, s:f}, s:{s:f, s:f}}", "flush_ms", "count", (json_int_t)flushes->count, "p50",
        flushes->p50_ms, "p99", flushes->p99_ms, "max", flushes->max_ms, "wakeup_p99", flushes->wakeup_p99_ms,
        "stolen_percent", "mean", flushes->stolen_percent, "worst_second", flushes->worst_stolen_percent);
    return json_object_update(row, measured) == 0;
}

static json_t *figures_json(const struct rush_plan *plan, const struct rush *rush)
{
    static const struct json_members TABLE = JSON_MEMBERS(FIGURES);
    struct open_counts totals = open_totals(&rush->load);
    json_t *row = counts_json(&totals);
    struct figures figures = {.rush = *rush, .worst_lag_ms = (double)rush->load.worst_lag_us / 1e3};
    figures.rush.maximum = rush->maximum > 0 ? round(rush->maximum * 10) / 10 : NAN;
    figures.rush.rate = round(rush->rate * 10) / 10;
    figures.rush.load.elapsed_s = round(rush->load.elapsed_s * 1e3) / 1e3;
    json_auto_t *numbers = members_pack(&TABLE, &figures);
    json_auto_t *more = json_pack("{s:{s:b, s:b, s:b}, s:o, s:o, s:o}", "kept", "stock", rush->stock_kept,
                                  "books", rush->books_kept, "answers", rush->answers_kept, "witness",
                                  witness_text(&rush->books), "outcomes", answers_json(rush, ALL_PHASES),
                                  "phases", phases_json(plan, rush));
    if (set_flushes(row, &rush->flushes) && json_object_update(row, numbers) == 0 &&
        json_object_update(row, more) == 0 && set_latency(row, rush))
        return row;
    json_decref(row);
    return NULL;
}

json_t *rush_row_new(const struct testbed *testbed, const struct rush_plan *plan,
                     const struct subject *subject, const struct rush *rush)
{
    json_t *row = json_pack("{s:s, s:O, s:O, s:I, s:I, s:s, s:s?}", "strategy", subject->name, "guarantee",
                            json_object_get(subject->cells, "guarantee"), "shown_by",
                            json_object_get(subject->cells, "shown_by"), "instances",
                            (json_int_t)testbed->count, "think_ms", (json_int_t)plan->think_ms, "verdict",
                            verdict_name(rush->verdict), "reason", subject->reason);
    if (!row || !rush->ran)
        return row;
    json_auto_t *figures = figures_json(plan, rush);
    if (figures && json_object_update(row, figures) == 0)
        return row;
    json_decref(row);
    return NULL;
}

/* ---- the files ----------------------------------------------------------------------------------------- */

bool rush_folder_valid(const char *folder)
{
    if ((mkdir(folder, 0777) == 0 || errno == EEXIST) && access(folder, W_OK | X_OK) == 0)
        return true;
    complain("cannot write into %s: %s", folder, strerror(errno));
    return false;
}

static bool write_latencies(const char *folder, const char *strategy, enum answer answer,
                            const struct hdr *hdr)
{
    char path[PATH_MAX], *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (out)
        hdr_print(hdr, out);
    bool fits = snprintf(path, sizeof path, "%s/%s.%s.hgrm", folder, strategy, answer_name(answer)) <
                (int)sizeof path;
    bool written = out && fclose(out) == 0 && fits && output_file(path, text, length);
    free(text);
    return written;
}

bool rush_write_latencies(const char *folder, const char *strategy, const struct rush *rush)
{
    struct hdr *hdr = malloc(sizeof *hdr);
    bool written = hdr;
    for (int answer = 0; written && rush->ran && answer < ANSWER_COUNT; answer++) {
        memset(hdr, 0, sizeof *hdr);
        collect(rush, ALL_PHASES, (enum answer)answer, hdr);
        if (hdr->count > 0)
            written = write_latencies(folder, strategy, (enum answer)answer, hdr);
    }
    free(hdr);
    return written;
}
