/* Adds up the results of schedules, and keeps the simplest counterexamples in sequence. */
#include "loadtest/explore/spec/totals.h"

#include "loadtest/explore/exec/invariants.h"
#include "loadtest/explore/spec/explore_verdict.h"

#include <string.h>

static bool is_simpler(const struct counterexample *one, const struct counterexample *other)
{
    if (one->is_bad != other->is_bad)
        return one->is_bad;
    return one->switches < other->switches ||
           (one->switches == other->switches && one->length < other->length);
}

/* Inserts it in its place; behind those that are equally simple. */
static void keep_counterexample(struct totals *totals, const struct execution *execution, bool bad,
                                unsigned switches)
{
    struct counterexample new = {.length = execution->transition_count, .switches = switches, .is_bad = bad};
    size_t most = totals->counterexamples_wanted ? totals->counterexamples_wanted : 1,
           at = totals->counterexample_count;
    while (at > 0 && is_simpler(&new, &totals->counterexamples[at - 1]))
        at--;
    if (at == most)
        return;
    memcpy(new.transitions, execution->transitions,
           execution->transition_count * sizeof execution->transitions[0]);
    totals->counterexample_count += totals->counterexample_count < most;
    memmove(totals->counterexamples + at + 1, totals->counterexamples + at,
            (totals->counterexample_count - at - 1) * sizeof totals->counterexamples[0]);
    totals->counterexamples[at] = new;
}

void totals_add(struct totals *totals, const struct execution *execution)
{
    const struct ending *ending = &execution->ending;
    unsigned switches = context_switches(execution->transitions, execution->transition_count);
    bool bad = execution_breaks_promise(execution);
    totals->schedules++;
    totals->transitions += execution->transition_count;
    totals->oversold += ending->oversold > 0;
    totals->drifted += ending->drift != 0;
    totals->undersold += ending->undersold;
    totals->sold_rightly += !bad && !ending->undersold;
    totals->waited += ending->waited;
    totals->deadlocks += ending->deadlock;
    totals->stuck += ending->stuck;
    totals->answers_wrong += ending->answers_wrong;
    totals->failed += ending->failed;
    totals->lock_stolen += ending->lock_stolen;
    totals->two_holders += ending->two_holders;
    totals->unbacked_grant += ending->unbacked_grant;
    totals->false_refusals += ending->false_refusal;
    totals->leaked += ending->leaked;
    totals->bad += bad;
    totals->by_switches[switches < SWITCHES_MAX ? switches : SWITCHES_MAX]++;
    if (bad || ending_breaks_lock(ending))
        keep_counterexample(totals, execution, bad, switches);
}

unsigned totals_switches(const struct totals *totals, double quantile)
{
    uint64_t rank = (uint64_t)(quantile * (double)(totals->schedules ? totals->schedules - 1 : 0)), seen = 0;
    unsigned switches = 0;
    while (switches < SWITCHES_MAX && (seen += totals->by_switches[switches]) <= rank)
        switches++;
    return switches;
}
