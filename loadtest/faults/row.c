/* The JSON row of a strategy under a fault: what was expected, the verdict, and the counts of all cycles. */
#include "loadtest/faults/row.h"

#include "loadtest/json/members.h"

struct row {
    const char *fault, *strategy, *guarantee, *judged_by, *expected, *verdict, *reason;
    struct fault_subject subject;
    int64_t bound_ms;
};

#define MEMBER(name, member) JSON_MEMBER(name, struct row, member, false)

static const struct json_member HEAD[] = {
    MEMBER("fault", fault),         MEMBER("strategy", strategy), MEMBER("guarantee", guarantee),
    MEMBER("judged_by", judged_by), MEMBER("expected", expected), MEMBER("cycles", subject.cycles),
    MEMBER("verdict", verdict),     MEMBER("reason", reason),
};

/* Only if the strategy was tried. */
static const struct json_member FIGURES[] = {
    MEMBER("intents", subject.counts.intents),
    MEMBER("acknowledged", subject.counts.acknowledged),
    MEMBER("unclear", subject.counts.unclear),
    MEMBER("refused", subject.counts.refused),
    MEMBER("turned_away", subject.counts.turned_away),
    MEMBER("orders", subject.counts.orders),
    MEMBER("lost", subject.counts.lost),
    MEMBER("duplicated", subject.counts.duplicated),
    MEMBER("denied", subject.counts.denied),
    MEMBER("wrong_answers", subject.counts.wrong),
    MEMBER("disordered", subject.counts.disordered),
    MEMBER("sections", subject.counts.sections),
    MEMBER("overlaps", subject.counts.overlaps),
    MEMBER("oversold", subject.counts.oversold),
    MEMBER("drift", subject.counts.drift),
    MEMBER("amounts_wrong", subject.counts.amounts_wrong),
    MEMBER("gone", subject.counts.gone),
    MEMBER("critical", subject.counts.critical),
    MEMBER("empty_cycles", subject.empty),
    MEMBER("seen_in", subject.seen_in),
    MEMBER("struck", subject.outages),
    MEMBER("longest_outage_ms", subject.longest_outage_ms),
    MEMBER("longest_recovery_ms", subject.longest_recovery_ms),
    MEMBER("bound_ms", bound_ms),
};

/* What each of the first cycles did. */
static json_t *cycles_json(const struct fault_subject *subject)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < subject->cycles && i < FAULT_CYCLES_KEPT; i++) {
        const struct fault_cycle *cycle = &subject->kept[i];
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:I}", "outage_ms",
                            (json_int_t)cycle->outage_ms, "recovery_ms", (json_int_t)cycle->recovery_ms,
                            "outage_from_ms", (json_int_t)cycle->outage_from_ms, "repaired_ms",
                            (json_int_t)cycle->repaired_ms, "stuck", cycle->stuck, "acknowledged",
                            (json_int_t)cycle->acknowledged, "refused", (json_int_t)cycle->refused, "lost",
                            (json_int_t)cycle->lost, "oversold", (json_int_t)cycle->oversold));
    }
    return list;
}

json_t *fault_row_new(const struct fault_run *run, const struct fault_subject *subject)
{
    static const struct json_members HEAD_TABLE = JSON_MEMBERS(HEAD), FIGURE_TABLE = JSON_MEMBERS(FIGURES);
    char promises[64];
    struct row row = {
        .fault = run->fault->name,
        .strategy = subject->strategy->name,
        .guarantee = guarantee_name(subject->strategy->guarantee),
        .judged_by = fault_promises(subject->expected, promises),
        .expected = subject->expected & SEEN_ANY ? "caught" : "kept",
        .verdict = verdict_name(fault_verdict(run->fault, subject)),
        .reason = subject->reason,
        .subject = *subject,
        .bound_ms = run->fault->bound_ms,
    };
    if (!fault_sees_its_place(subject->strategy))
        row.subject.counts.disordered = 0;
    json_t *object = members_pack(&HEAD_TABLE, &row);
    if (subject->cycles == 0)
        return object;
    json_auto_t *figures = members_pack(&FIGURE_TABLE, &row);
    bool is_odd = run->history && run->history->oddity[0] && subject->counts.wrong > 0;
    if (object && figures && json_object_update(object, figures) == 0 &&
        json_object_set_new(object, "each_cycle", cycles_json(subject)) == 0 &&
        (!is_odd || json_object_set_new(object, "oddity", json_string(run->history->oddity)) == 0))
        return object;
    json_decref(object);
    return NULL;
}
