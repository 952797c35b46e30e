/* Compares the answers, the stock and the orders of one run of `loadtest check`. Pure. */
#include "loadtest/own/check_row.h"

#include "loadtest/cli/complain.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

int64_t check_default_stock(int64_t units, int64_t orders)
{
    return orders * units + units - 1;
}

struct check_answers check_answers_of(const struct shop_answers *answers)
{
    return (struct check_answers){.acknowledged = answers->sold,
                                  .refused = answers->sold_out,
                                  .accepted = answers->accepted,
                                  .unclear = answers->failed + answers->unanswered};
}

struct check_counts check_counts_of(const struct shop_description *description,
                                    const struct shop_stock *before, const struct shop_stock *after,
                                    const struct check_answers *answers)
{
    int64_t units = description->units, acknowledged = answers->acknowledged * units,
            accepted = answers->accepted * units, unclear = answers->unclear * units,
            all = answers->acknowledged + answers->refused + answers->accepted + answers->unclear;
    struct check_counts counts = {.sold = after->sold - before->sold, .left = after->left};
    counts.oversold = counts.sold > before->left ? counts.sold - before->left : 0;
    counts.drift = counts.sold - (before->left - after->left);
    counts.lost = acknowledged > counts.sold ? acknowledged - counts.sold : 0;
    int64_t explained = acknowledged + accepted + unclear;
    counts.unacknowledged = counts.sold > explained ? counts.sold - explained : 0;
    counts.turned_away = after->left >= units &&
                         (answers->refused > 0 || (accepted > 0 && acknowledged + accepted > counts.sold));
    counts.failing = answers->unclear * 100 > all * CHECK_FAILING_PERCENT;
    if (after->broken >= 0)
        counts.broken = description->invariants[after->broken];
    return counts;
}

enum verdict check_verdict(const struct check_counts *counts, unsigned allowed)
{
    if (counts->oversold > 0)
        return VERDICT_OVERSOLD;
    if (counts->drift != 0)
        return VERDICT_DRIFT;
    if (counts->broken)
        return VERDICT_INVARIANT;
    if (counts->lost > 0 || counts->unacknowledged > 0)
        return VERDICT_ANSWERS_LOST;
    if (counts->turned_away && !(allowed & 1U << VERDICT_TURNED_AWAY))
        return VERDICT_TURNED_AWAY;
    return counts->failing && !(allowed & 1U << VERDICT_FAILING) ? VERDICT_FAILING : VERDICT_CLEAN;
}

bool check_allowed(const struct texts *names, unsigned *ret_allowed)
{
    enum verdict verdict;
    *ret_allowed = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (!verdict_parse(names->item[i], &verdict) ||
            (verdict != VERDICT_TURNED_AWAY && verdict != VERDICT_FAILING)) {
            complain("--allow takes turned-away or failing, and not '%.60s'", names->item[i]);
            return false;
        }
        *ret_allowed |= 1U << verdict;
    }
    return true;
}

/* "201 × 100, 409 × 300" */
static void list_statuses(const struct shop_answers *answers, char *ret_list, size_t size)
{
    size_t used = 0;
    ret_list[0] = 0;
    for (size_t i = 0; i < answers->status_count && used < size; i++) {
        char status[16] = "others";
        if (answers->statuses[i].status)
            snprintf(status, sizeof status, "%ld", answers->statuses[i].status);
        used += (size_t)snprintf(ret_list + used, size - used, "%s%s × %" PRId64, used ? ", " : "", status,
                                 answers->statuses[i].count);
    }
}

/* A percentile of the latency in milliseconds, to a hundredth, which reads back as it was written. */
static json_t *percentile(const struct shop_answers *answers, double p)
{
    return answers->latency.count ? json_real(round((double)hdr_percentile(&answers->latency, p) / 10) / 100)
                                  : json_null();
}

json_t *check_row_new(int64_t number, const struct check_counts *counts, const struct shop_answers *answers,
                      unsigned allowed)
{
    char statuses[256];
    list_statuses(answers, statuses, sizeof statuses);
    double rate = answers->seconds > 0 ? (double)answers->sold / answers->seconds : 0;
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:f, s:{s:o, s:o}, s:s?, s:b, s:b, s:s}",
        "run", (json_int_t)number, "accepted", (json_int_t)answers->accepted, "sold",
        (json_int_t)counts->sold, "left", (json_int_t)counts->left, "oversold", (json_int_t)counts->oversold,
        "drift", (json_int_t)counts->drift, "lost", (json_int_t)counts->lost, "unacknowledged",
        (json_int_t)counts->unacknowledged, "acknowledged", (json_int_t)answers->sold, "sold_out",
        (json_int_t)answers->sold_out, "failed", (json_int_t)answers->failed, "unanswered",
        (json_int_t)answers->unanswered, "statuses", statuses, "first_failure", answers->first_failure,
        "hint", answers->hint, "orders_per_s", round(rate * 10) / 10, "latency_ms", "p50",
        percentile(answers, 0.5), "p99", percentile(answers, 0.99), "broken_invariant", counts->broken,
        "turned_away", counts->turned_away, "failing", counts->failing, "verdict",
        verdict_name(check_verdict(counts, allowed)));
}
