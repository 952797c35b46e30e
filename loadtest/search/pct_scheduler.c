/* PCT: draws random priorities, and chooses the enabled transition of the highest one. */
#include "loadtest/search/pct_scheduler.h"

#include "base/prng.h"

#include <stdbool.h>

void pct_begin(struct pct *pct, uint64_t *random, size_t length)
{
    length = length ? length : 1;
    /* A random permutation. Priorities below DEPTH are for actors that lose theirs at a change point. */
    for (unsigned i = 0; i < ACTORS_MAX; i++) {
        unsigned place = (unsigned)random_below(random, i + 1);
        pct->priority[i] = pct->priority[place];
        pct->priority[place] = pct->depth + i;
    }
    for (unsigned i = 0; i + 1 < pct->depth; i++)
        pct->change_at[i] = random_below(random, length);
    pct->fault_at = random_below(random, length);
}

static uint8_t highest(const struct pct *pct, const struct transition *transitions, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        bool better = pct->priority[transitions[i].actor] > pct->priority[transitions[best].actor];
        if (transitions[i].kind == TRANSITION_STEP && (transitions[best].kind != TRANSITION_STEP || better))
            best = i;
    }
    return (uint8_t)best;
}

uint8_t pct_choose(struct pct *pct, uint64_t *random, size_t level, const struct transition *transitions,
                   size_t count)
{
    size_t faults = 0;
    for (size_t i = 0; i < count; i++)
        faults += transitions[i].kind != TRANSITION_STEP;
    size_t wanted = faults && level >= pct->fault_at ? random_below(random, faults) : faults;
    for (size_t i = 0; i < count && wanted < faults; i++)
        if (transitions[i].kind != TRANSITION_STEP && wanted-- == 0)
            return (uint8_t)i;
    for (unsigned i = 0; i + 1 < pct->depth; i++)
        if (pct->change_at[i] == level)
            pct->priority[transitions[highest(pct, transitions, count)].actor] = i;
    return highest(pct, transitions, count);
}
