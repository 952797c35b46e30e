/* Keeps counterexamples sorted. */
#include "loadtest/search/counterexamples.h"

#include <string.h>

bool counterexample_is_before(const struct counterexample *one, const struct counterexample *other)
{
    return one->badness > other->badness || (one->badness == other->badness && one->effort < other->effort);
}

size_t counterexamples_keep(struct counterexamples *kept, const struct counterexample *next)
{
    size_t most = kept->most ? kept->most : 1, at = kept->count;
    while (at > 0 && counterexample_is_before(next, &kept->item[at - 1]))
        at--;
    if (at == most)
        return at;
    kept->count += kept->count < most;
    memmove(&kept->item[at + 1], &kept->item[at], (kept->count - at - 1) * sizeof *next);
    kept->item[at] = *next;
    return at;
}
