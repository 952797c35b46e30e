/* Runs the schedules of a search one after the other, until none is left or something ends it. */
#ifndef OVERSELL_LOADTEST_SEARCH_RUN_SEARCH_H
#define OVERSELL_LOADTEST_SEARCH_RUN_SEARCH_H

#include "loadtest/search/depth_first_search.h"

/* What run_search asks the caller. Each function gets SELF. */
struct search_caller {
    void *self;
    int64_t until_us; /* monotonic; INT64_MAX: no limit */
    /* Is another schedule wanted? */
    bool (*goes_on)(void *self);
    /* A schedule has run. False: there is a reason to stop. NULL: nothing to do. */
    bool (*ran)(void *self);
    /* The schedule is WHY: SEARCH_DIFFERS, and then it has not ended, or SEARCH_DOUBTFUL. Ends it. False: it may not run again. */
    bool (*again)(void *self, enum search_outcome why);
};

/* SEARCH_DONE: no schedule is left. SEARCH_RAN: a limit, an interrupt or RAN has ended the search. Otherwise the reason is in SEARCH's
 * error, or the program has said it. */
enum search_outcome run_search(struct search *search, const struct program *program,
                               const struct search_caller *caller);

#endif
