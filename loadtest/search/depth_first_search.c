/* Depth-first search by replay: each schedule repeats the choices of the one before up to the deepest choice point that has an
 * untried transition, takes that, and from there on always the first enabled one. */
#include "loadtest/search/depth_first_search.h"

#include "base/prng.h"
#include "loadtest/search/alike_schedules.h"

#include <stdio.h>
#include <string.h>

/* ---- choice points and preemption bounding ------------------------------------------------------------------------------ */

static bool same_transitions(const struct choice_point *point, const struct transition *transitions,
                             size_t count)
{
    return point->count == count && memcmp(point->transitions, transitions, count * sizeof *transitions) == 0;
}

bool transition_is_among(const struct transition *transitions, size_t count, struct transition wanted)
{
    for (size_t i = 0; i < count; i++)
        if (transitions[i].actor == wanted.actor && transitions[i].kind == wanted.kind)
            return true;
    return false;
}

/* Does TRANSITION run another actor although the last one could make its next step? */
static bool is_preemption(const struct choice_point *before, const struct choice_point *point,
                          struct transition transition)
{
    if (!before || transition.kind != TRANSITION_STEP)
        return false;
    unsigned last = before->transitions[before->taken].actor;
    return transition.actor != last &&
           transition_is_among(point->transitions, point->count,
                               (struct transition){(uint8_t)last, TRANSITION_STEP});
}

/* Removes the transitions that the bound does not allow. */
static void limit_preemptions(struct choice_point *point, const struct choice_point *before, int bound)
{
    struct choice_point all = *point;
    point->count = 0;
    for (size_t i = 0; i < all.count; i++)
        if (all.preemptions < bound || !is_preemption(before, &all, all.transitions[i]))
            point->transitions[point->count++] = all.transitions[i];
}

/* ---- sleep sets -------------------------------------------------------------------------------------------------- */

/* A bound counts preemptions, which differ between schedules that are otherwise the same; and samples are weighed by all. */
static bool reduces(const struct search *search, const struct program *program)
{
    return program->footprint && search->bound == NO_BOUND && !search->samples;
}

/* Lets CANDIDATE sleep at POINT, after TAKEN with its FOOTPRINT, if it is enabled there and nothing that it reads has changed. */
static void let_sleep(struct choice_point *point, const struct sleeper *candidate, struct transition taken,
                      const struct footprint *footprint)
{
    size_t at = 0;
    while (at < point->count &&
           memcmp(&point->transitions[at], &candidate->transition, sizeof candidate->transition) != 0)
        at++;
    if (at == point->count || candidate->transition.actor == taken.actor ||
        footprints_meet(&candidate->footprint, footprint))
        return;
    point->count--;
    memmove(&point->transitions[at], &point->transitions[at + 1],
            (point->count - at) * sizeof point->transitions[0]);
    point->sleepers[point->sleeper_count++] = *candidate;
}

/* What slept before, and what was tried there, sleeps at POINT as well. */
static void keep_asleep(struct choice_point *point, const struct choice_point *before)
{
    const struct transition taken = before->transitions[before->taken];
    const struct footprint *footprint = &before->footprints[before->taken];
    for (size_t i = 0; i < before->sleeper_count; i++)
        let_sleep(point, &before->sleepers[i], taken, footprint);
    for (size_t i = 0; i < before->taken; i++) {
        const struct sleeper tried = {before->transitions[i], before->footprints[i]};
        let_sleep(point, &tried, taken, footprint);
    }
}

/* ---- sampling ------------------------------------------------------------------------------------------------- */

/* Uniform over interleavings: of the interleavings of m and n transitions, the share m / (m + n) begins with one of the m. */
static uint8_t choose_at_random(struct search *search, const struct program *program,
                                const struct choice_point *point)
{
    size_t weight[ENABLED_MAX] = {0}, sum = 0;
    for (size_t i = 0; i < point->count; i++) {
        size_t left = point->transitions[i].kind == TRANSITION_STEP
                          ? program->remaining(program->self, point->transitions[i].actor)
                          : 1;
        weight[i] = left ? left : 1;
        sum += weight[i];
    }
    size_t at = sum ? random_below(&search->random, sum) : 0;
    uint8_t i = 0;
    while (i + 1 < point->count && at >= weight[i])
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
    const struct choice_point *last = &search->path[level - 1], *before = level > 1 ? last - 1 : NULL;
    return (uint8_t)(last->preemptions + is_preemption(before, last, last->transitions[last->taken]));
}

/* Records the choice point at LEVEL and chooses its transition. False: a repeated choice point differs from the last run. A
 * sample repeats a path only after a doubtful run; if it differs then, chance was the cause, and the rest is drawn again. */
static bool visit_choice_point(struct search *search, const struct program *program, size_t level,
                               const struct transition *transitions, size_t count)
{
    struct choice_point *point = &search->path[level];
    struct choice_point now = {.count = (uint8_t)count,
                               .enabled = (uint8_t)count,
                               .preemptions = preemptions_before(search, level),
                               .fingerprint = program->fingerprint ? program->fingerprint(program->self) : 0};
    memcpy(now.transitions, transitions, count * sizeof *transitions);
    if (search->bound != NO_BOUND)
        limit_preemptions(&now, level > 0 ? point - 1 : NULL, search->bound);
    search->cut |= now.count < count;
    if (reduces(search, program) && level > 0)
        keep_asleep(&now, point - 1);
    if (level < search->depth) {
        bool is_same = point->fingerprint == now.fingerprint &&
                       same_transitions(point, now.transitions, now.count);
        if (is_same || !search->samples)
            return is_same;
        search->depth = level;
    }
    *point = now;
    if (search->samples && search->pct.depth > 0)
        point->taken = pct_choose(&search->pct, &search->random, level, point->transitions, point->count);
    else if (search->samples)
        point->taken = choose_at_random(search, program, point);
    return true;
}

/* Before the first schedule its length is a guess: the steps of all actors. */
static void draw_priorities(struct search *search, const struct program *program)
{
    size_t length = search->longest;
    for (unsigned i = 0; i < ACTORS_MAX && search->longest == 0; i++)
        length += program->remaining(program->self, i);
    pct_begin(&search->pct, &search->random, length);
}

/* Backtracks to the deepest choice point that has an untried transition. */
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

/* All that is enabled at LEVEL sleeps. */
static enum search_outcome prune(struct search *search, const struct program *program, size_t level)
{
    search->length = level;
    search->pruned++;
    if (!program->stop(program->self))
        return fail(search, SEARCH_FAILED, "the schedule did not end");
    advance(search);
    return SEARCH_PRUNED;
}

enum search_outcome search_run(struct search *search, const struct program *program)
{
    struct transition transitions[ENABLED_MAX];
    size_t level = 0, count;
    if (search->done)
        return SEARCH_DONE;
    if (!program->start(program->self))
        return fail(search, SEARCH_FAILED, "the product could not be reset");
    if (search->pct.depth > 0 && search->depth == 0)
        draw_priorities(search, program);
    while ((count = program->enabled(program->self, transitions)) > 0) {
        if (level == DEPTH_MAX)
            return fail(search, SEARCH_FAILED, "a schedule did not end");
        if (!visit_choice_point(search, program, level, transitions, count))
            return fail(search, SEARCH_DIFFERS, "the same steps did not lead to the same events");
        struct choice_point *point = &search->path[level];
        if (point->count == 0)
            return prune(search, program, level);
        if (!program->apply(program->self, point->transitions[point->taken]))
            return fail(search, SEARCH_FAILED, "a step could not be run");
        if (reduces(search, program))
            program->footprint(program->self, &point->footprints[point->taken]);
        search->ran[level] = point->transitions[point->taken];
        search->footprints[level] = point->footprints[point->taken];
        level++;
    }
    if (level < search->depth && !search->samples)
        return fail(search, SEARCH_DIFFERS, "the schedule ended earlier than in the run before");
    search->length = level;
    search->reduces = reduces(search, program);
    search->longest = level > search->longest ? level : search->longest;
    if (!program->end(program->self))
        return fail(search, SEARCH_FAILED, "the schedule did not end");
    if (program->is_doubtful && program->is_doubtful(program->self)) {
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
        const struct choice_point *point = &search->path[level - 1];
        coverage = (point->taken + coverage) / point->count;
    }
    return coverage;
}

unsigned context_switches(const struct transition *transitions, size_t count)
{
    unsigned switches = 0;
    for (size_t i = 1; i < count; i++)
        switches += transitions[i].actor != transitions[i - 1].actor;
    return switches;
}

static bool is_enabled(const struct choice_point *point, struct transition transition)
{
    bool enabled = transition_is_among(point->transitions, point->count, transition);
    for (size_t i = 0; i < point->sleeper_count; i++)
        enabled |= transition_is_among(&point->sleepers[i].transition, 1, transition);
    return enabled;
}

/* An actor that waits for another goes on after one of its transitions, whatever the next step then touches. */
static void find_enablers(const struct search *search, uint16_t ret_enabled_by[static DEPTH_MAX])
{
    for (size_t i = 0; i < search->length; i++) {
        size_t j = i;
        while (j > 0 && is_enabled(&search->path[j - 1], search->ran[i]) &&
               search->ran[j - 1].actor != search->ran[i].actor)
            j--;
        ret_enabled_by[i] = (uint16_t)j;
    }
}

int64_t search_alike(struct search *search, uint64_t *by_switches, size_t size,
                     struct transition *ret_simplest)
{
    uint16_t enabled_by[DEPTH_MAX];
    const struct traced traced = {search->ran, search->footprints, enabled_by, search->length};
    if (search->reduces)
        find_enablers(search, enabled_by);
    const int64_t count = search->reduces ? alike_schedules(&traced, by_switches, size, ret_simplest) : -1;
    search->uncounted |= search->reduces && count < 0;
    if (count >= 0)
        return count;
    const unsigned switches = context_switches(search->ran, search->length);
    if (by_switches)
        by_switches[switches < size ? switches : size - 1]++;
    memcpy(ret_simplest, search->ran, search->length * sizeof *ret_simplest);
    return 1;
}

unsigned search_preemptions(const struct search *search)
{
    return preemptions_before(search, search->length);
}

double search_weight(const struct search *search)
{
    double weight = 1;
    for (size_t i = 0; i < search->length; i++)
        weight /= search->path[i].enabled;
    return weight;
}
