/* The schedules that differ from one that has run only in the sequence of transitions that do not meet (Mazurkiewicz: a trace; Godefroid,
 * "Partial-Order Methods for the Verification of Concurrent Systems", LNCS 1032, 1996). They lead to the same end, so a search that has left them
 * out can count them, and show the simplest of them. Pure functions. Any thread. */
#ifndef OVERSELL_LOADTEST_SEARCH_ALIKE_SCHEDULES_H
#define OVERSELL_LOADTEST_SEARCH_ALIKE_SCHEDULES_H

#include "loadtest/search/footprint.h"
#include "loadtest/search/transition.h"

#include <stdbool.h>

/* One schedule, as it has run. */
struct traced {
    const struct transition *transitions;
    const struct footprint *footprints; /* of each transition */
    const uint16_t
        *enabled_by; /* of each: the number of the one that has enabled it, from 1 on; 0: none had to */
    size_t count;
};

/* Returns the number of schedules that are alike, with this one; INT64_MAX: as many or more. Those with N context switches are added to
 * RET_BY_SWITCHES[N], which has SIZE elements; the last one also counts those with more. RET_BY_SWITCHES may be NULL. Writes the one with the
 * fewest context switches to RET_SIMPLEST, which has room for COUNT transitions: of several the first, with the lowest actors first. -1: out of
 * memory, or the actors have too many transitions to count. */
int64_t alike_schedules(const struct traced *traced, uint64_t *ret_by_switches, size_t size,
                        struct transition *ret_simplest);

#endif
