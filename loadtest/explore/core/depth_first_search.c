/* Depth-first search over all orders in which moves can be made: every schedule is run from the start, along the choices
 * of the one before up to the deepest point where something is left to be tried. */
#include "loadtest/explore/core/depth_first_search.h"

#include "base/prng.h"

#include <stdio.h>
#include <string.h>

/* ---- what may be done at a point ------------------------------------------------------------------------------ */

static bool same_moves(const struct choice *choice, const struct move *moves, size_t count)
{
    return choice->count == count && memcmp(choice->moves, moves, count * sizeof *moves) == 0;
}

static bool can_step(const struct move *moves, size_t count, unsigned actor)
{
    for (size_t i = 0; i < count; i++)
        if (moves[i].kind == MOVE_STEP && moves[i].actor == actor)
            return true;
    return false;
}

/* To let another order go on while the last one could. */
static bool is_preemption(const struct choice *before, const struct choice *choice, struct move move)
{
    if (!before || move.kind != MOVE_STEP)
        return false;
    unsigned last = before->moves[before->taken].actor;
    return move.actor != last && can_step(choice->moves, choice->count, last);
}

/* Leaves those moves that the bound allows. */
static void keep_to_bound(struct choice *choice, const struct choice *before, int bound)
{
    struct choice all = *choice;
    choice->count = 0;
    for (size_t i = 0; i < all.count; i++)
        if (all.preemptions < bound || !is_preemption(before, &all, all.moves[i]))
            choice->moves[choice->count++] = all.moves[i];
}

/* ---- sampling ------------------------------------------------------------------------------------------------- */

/* Of the interleavings of m and n moves the share m / (m + n) begins with one of the m: so each has the same chance. */
static uint8_t choose_at_random(struct search *search, const struct world *world, const struct choice *choice)
{
    size_t weight[MOVES_MAX] = {0}, sum = 0;
    for (size_t i = 0; i < choice->count; i++) {
        size_t left = choice->moves[i].kind == MOVE_STEP
                          ? world->remaining(world->self, choice->moves[i].actor)
                          : 1;
        weight[i] = left ? left : 1;
        sum += weight[i];
    }
    size_t at = sum ? random_below(&search->random, sum) : 0;
    uint8_t i = 0;
    while (i + 1 < choice->count && at >= weight[i])
        at -= weight[i++];
    return i;
}

/* ---- running -------------------------------------------------------------------------------------------------- */

static enum search_outcome fail(struct search *search, enum search_outcome outcome, const char *why)
{
    snprintf(search->error, sizeof search->error, "%s", why);
    return outcome;
}

static uint8_t preemptions_before(const struct search *search, size_t level)
{
    if (level == 0)
        return 0;
    const struct choice *last = &search->path[level - 1], *before = level > 1 ? last - 1 : NULL;
    return (uint8_t)(last->preemptions + is_preemption(before, last, last->moves[last->taken]));
}

/* The point at LEVEL, with the move that is due there. False: it is not the point that it was. A sample is run along a path
 * only where it was doubtful; if it goes another way now, an accident was the cause, and the rest of it is drawn. */
static bool make_choice(struct search *search, const struct world *world, size_t level,
                        const struct move *moves, size_t count)
{
    struct choice *choice = &search->path[level];
    struct choice now = {.count = (uint8_t)count,
                         .possible = (uint8_t)count,
                         .preemptions = preemptions_before(search, level),
                         .seen = world->seen ? world->seen(world->self) : 0};
    memcpy(now.moves, moves, count * sizeof *moves);
    if (search->bound != NO_BOUND)
        keep_to_bound(&now, level > 0 ? choice - 1 : NULL, search->bound);
    search->cut |= now.count < count;
    if (level < search->depth) {
        bool is_same = choice->seen == now.seen && same_moves(choice, now.moves, now.count);
        if (is_same || !search->samples)
            return is_same;
        search->depth = level;
    }
    *choice = now;
    if (search->samples && search->pct.depth > 0)
        choice->taken = pct_choose(&search->pct, &search->random, level, choice->moves, choice->count);
    else if (search->samples)
        choice->taken = choose_at_random(search, world, choice);
    return true;
}

/* Of the first schedule its length is guessed: each order's moves. */
static void draw_priorities(struct search *search, const struct world *world)
{
    size_t length = search->longest;
    for (unsigned i = 0; i < ACTORS_MAX && search->longest == 0; i++)
        length += world->remaining(world->self, i);
    pct_begin(&search->pct, &search->random, length);
}

/* To the deepest point where something is left to be tried. */
static void advance(struct search *search)
{
    search->depth = search->length;
    while (search->depth > 0 &&
           search->path[search->depth - 1].taken + 1 == search->path[search->depth - 1].count)
        search->depth--;
    search->done = search->depth == 0;
    if (!search->done)
        search->path[search->depth - 1].taken++;
}

enum search_outcome search_run(struct search *search, const struct world *world)
{
    struct move moves[MOVES_MAX];
    size_t level = 0, count;
    if (search->done)
        return SEARCH_DONE;
    if (!world->start(world->self))
        return fail(search, SEARCH_FAILED, "no fresh state");
    if (search->pct.depth > 0 && search->depth == 0)
        draw_priorities(search, world);
    while ((count = world->enabled(world->self, moves)) > 0) {
        if (level == DEPTH_MAX)
            return fail(search, SEARCH_FAILED, "a schedule without an end");
        if (!make_choice(search, world, level, moves, count))
            return fail(search, SEARCH_DIFFERS, "the same steps did not lead to the same events");
        if (!world->make(world->self, search->path[level].moves[search->path[level].taken]))
            return fail(search, SEARCH_FAILED, "a move could not be made");
        level++;
    }
    if (level < search->depth && !search->samples)
        return fail(search, SEARCH_DIFFERS, "it ended sooner than the last time");
    search->length = level;
    search->longest = level > search->longest ? level : search->longest;
    if (!world->end(world->self))
        return fail(search, SEARCH_FAILED, "no end");
    if (world->is_doubtful && world->is_doubtful(world->self)) {
        if (search->samples)
            search->depth = search->length; /* the same way again; otherwise failures would be undercounted */
        return fail(search, SEARCH_DOUBTFUL, "an order failed, and no other order explains it");
    }
    if (search->samples)
        search->depth = 0;
    else
        advance(search);
    return SEARCH_RAN;
}

double search_coverage(const struct search *search)
{
    double coverage = 0;
    if (search->done)
        return 1;
    for (size_t level = search->depth; level > 0; level--) {
        const struct choice *choice = &search->path[level - 1];
        coverage = (choice->taken + coverage) / choice->count;
    }
    return coverage;
}

unsigned moves_switches(const struct move *moves, size_t count)
{
    unsigned switches = 0;
    for (size_t i = 1; i < count; i++)
        switches += moves[i].actor != moves[i - 1].actor;
    return switches;
}

unsigned search_preemptions(const struct search *search)
{
    return preemptions_before(search, search->length);
}

double search_weight(const struct search *search)
{
    double weight = 1;
    for (size_t i = 0; i < search->length; i++)
        weight /= search->path[i].possible;
    return weight;
}
