/* Repeats a schedule that differs or is doubtful, and asks for limits between schedules. */
#include "loadtest/search/run_search.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"

enum search_outcome run_search(struct search *search, const struct program *program,
                               const struct search_caller *caller)
{
    while (!interrupt_came() && monotonic_us() < caller->until_us && caller->goes_on(caller->self)) {
        enum search_outcome outcome = search_run(search, program);
        if (outcome == SEARCH_PRUNED)
            continue;
        bool goes_on = outcome == SEARCH_RAN ? !caller->ran || caller->ran(caller->self)
                                             : (outcome == SEARCH_DIFFERS || outcome == SEARCH_DOUBTFUL) &&
                                                   caller->again(caller->self, outcome);
        if (!goes_on)
            return outcome;
    }
    return SEARCH_RAN;
}
