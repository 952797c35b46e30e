/* Adds up the results of schedules, and keeps the simplest counterexamples in sequence. */
#include "loadtest/explore/spec/totals.h"

#include "loadtest/explore/exec/invariants.h"
#include "loadtest/explore/spec/explore_verdict.h"

#include <string.h>

static void keep_counterexample(struct totals *totals, const struct execution *execution, bool bad,
                                unsigned switches)
{
    struct counterexample next = {.length = execution->transition_count,
                                  .badness = bad,
                                  .switches = switches,
                                  .effort = switches * (DEPTH_MAX + 1) +
                                            (unsigned)execution->transition_count};
    memcpy(next.transitions, execution->transitions, next.length * sizeof next.transitions[0]);
    (void)counterexamples_keep(&totals->counterexamples, &next);
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
