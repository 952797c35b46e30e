/* Keeps counterexamples sorted. */
#include "loadtest/search/counterexamples.h"

#include <string.h>

/* In the sequence in which a search comes to them: the steps of the first actors first, then the faults. */
static bool comes_first(const struct counterexample *one, const struct counterexample *other)
{
    size_t i = 0;
    while (i < one->length && i < other->length &&
           memcmp(&one->transitions[i], &other->transitions[i], sizeof one->transitions[i]) == 0)
        i++;
    if (i == one->length || i == other->length)
        return false;
    const struct transition a = one->transitions[i], b = other->transitions[i];
    return a.kind < b.kind || (a.kind == b.kind && a.actor < b.actor);
}

bool counterexample_is_before(const struct counterexample *one, const struct counterexample *other)
{
    if (one->badness != other->badness)
        return one->badness > other->badness;
    return one->effort < other->effort || (one->effort == other->effort && comes_first(one, other));
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
