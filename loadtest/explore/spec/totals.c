/* Adds up the results of schedules, and keeps the simplest counterexamples in sequence. */
#include "loadtest/explore/spec/totals.h"

#include "loadtest/explore/exec/invariants.h"
#include "loadtest/explore/spec/explore_verdict.h"

#include <string.h>

/* NEXT has its transitions. */
static void keep_counterexample(struct totals *totals, struct counterexample *next, bool bad)
{
    next->badness = bad;
    next->switches = context_switches(next->transitions, next->length);
    next->effort = next->switches * (DEPTH_MAX + 1) + (unsigned)next->length;
    (void)counterexamples_keep(&totals->counterexamples, next);
}

/* Returns how many schedules are alike, with their context switches in TOTALS and the simplest in RET_SIMPLEST. */
static uint64_t count_alike(struct totals *totals, const struct execution *execution, struct search *search,
                            struct counterexample *ret_simplest)
{
    ret_simplest->length = execution->transition_count;
    if (search)
        return (uint64_t)search_alike(search, totals->by_switches, SWITCHES_MAX + 1,
                                      ret_simplest->transitions);
    const unsigned switches = context_switches(execution->transitions, execution->transition_count);
    totals->by_switches[switches < SWITCHES_MAX ? switches : SWITCHES_MAX]++;
    memcpy(ret_simplest->transitions, execution->transitions,
           execution->transition_count * sizeof execution->transitions[0]);
    return 1;
}

void totals_add(struct totals *totals, const struct execution *execution, struct search *search)
{
    const struct ending *ending = &execution->ending;
    struct counterexample simplest = {0};
    const uint64_t count = count_alike(totals, execution, search, &simplest);
    bool bad = execution_breaks_promise(execution);
    totals->run++;
    totals->schedules += count;
    totals->transitions += count * execution->transition_count;
    const struct {
        uint64_t *sum;
        bool has;
    } sums[] = {
        {&totals->oversold, ending->oversold > 0},
        {&totals->drifted, ending->drift != 0},
        {&totals->undersold, ending->undersold},
        {&totals->sold_rightly, !bad && !ending->undersold},
        {&totals->waited, ending->waited},
        {&totals->deadlocks, ending->deadlock},
        {&totals->stuck, ending->stuck},
        {&totals->answers_wrong, ending->answers_wrong},
        {&totals->failed, ending->failed},
        {&totals->lock_stolen, ending->lock_stolen},
        {&totals->two_holders, ending->two_holders},
        {&totals->unbacked_grant, ending->unbacked_grant},
        {&totals->false_refusals, ending->false_refusal},
        {&totals->leaked, ending->leaked},
        {&totals->bad, bad},
    };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        *sums[i].sum += sums[i].has ? count : 0;
    if (bad || ending_breaks_lock(ending))
        keep_counterexample(totals, &simplest, bad);
}

unsigned totals_switches(const struct totals *totals, double quantile)
{
    uint64_t rank = (uint64_t)(quantile * (double)(totals->schedules ? totals->schedules - 1 : 0)), seen = 0;
    unsigned switches = 0;
    while (switches < SWITCHES_MAX && (seen += totals->by_switches[switches]) <= rank)
        switches++;
    return switches;
}
