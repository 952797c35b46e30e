/* Counts paths. A state is the number of transitions that each actor has made; a path from the first state to the last, which keeps the sequence
 * of all transitions that meet, is one of the schedules. What is known of the way from a state to the end depends only on the state and on the
 * actor that moved last, so the states are gone through once, from the last to the first. */
#include "loadtest/search/alike_schedules.h"

#include <stdlib.h>
#include <string.h>

enum { ALIKE_ACTORS = 32, ALIKE_CELLS = 1 << 22, FAR = UINT16_MAX };

struct lattice {
    const struct traced *traced;
    size_t actors, count[ALIKE_ACTORS], stride[ALIKE_ACTORS], states;
    uint8_t name[ALIKE_ACTORS]; /* of each actor, in ascending sequence */
    uint16_t *of[ALIKE_ACTORS]; /* of each actor: which transitions are its own */
    uint16_t *need;             /* of each transition: how many of each actor come before it */
    size_t most_switches;       /* that are told apart; 0: none are */
    /* For each state and each actor that moved last: the ways to the end, by context switches, and the fewest of these. */
    int64_t *ways;
    uint16_t *fewest;
};

static size_t actor_of(struct lattice *lattice, uint8_t name)
{
    size_t i = 0;
    while (i < lattice->actors && lattice->name[i] != name)
        i++;
    return i;
}

static int by_name(const void *one, const void *other)
{
    return *(const uint8_t *)one - *(const uint8_t *)other;
}

/* False: too many. */
static bool list_actors(struct lattice *lattice)
{
    const struct traced *traced = lattice->traced;
    for (size_t i = 0; i < traced->count; i++) {
        if (actor_of(lattice, traced->transitions[i].actor) < lattice->actors)
            continue;
        if (lattice->actors == ALIKE_ACTORS)
            return false;
        lattice->name[lattice->actors++] = traced->transitions[i].actor;
    }
    qsort(lattice->name, lattice->actors, 1, by_name);
    for (size_t i = 0; i < traced->count; i++)
        lattice->count[actor_of(lattice, traced->transitions[i].actor)]++;
    lattice->states = 1;
    for (size_t i = 0; i < lattice->actors; i++) {
        lattice->stride[i] = lattice->states;
        lattice->states *= lattice->count[i] + 1;
        if (lattice->states * lattice->actors * (lattice->most_switches + 1) > ALIKE_CELLS)
            return false;
    }
    return true;
}

/* False: out of memory. */
static bool order_transitions(struct lattice *lattice)
{
    const struct traced *traced = lattice->traced;
    size_t done[ALIKE_ACTORS] = {0};
    lattice->need = calloc(traced->count, lattice->actors * sizeof *lattice->need);
    for (size_t i = 0; i < lattice->actors; i++)
        if (!(lattice->of[i] = calloc(lattice->count[i], sizeof *lattice->of[i])))
            return false;
    if (!lattice->need)
        return false;
    for (size_t i = 0; i < traced->count; i++) {
        const size_t actor = actor_of(lattice, traced->transitions[i].actor);
        size_t before[ALIKE_ACTORS] = {0};
        for (size_t j = 0; j < i; j++) {
            const size_t other = actor_of(lattice, traced->transitions[j].actor);
            before[other]++;
            if (traced->enabled_by[i] == j + 1 ||
                footprints_meet(&traced->footprints[i], &traced->footprints[j]))
                lattice->need[i * lattice->actors + other] = (uint16_t)before[other];
        }
        lattice->of[actor][done[actor]++] = (uint16_t)i;
    }
    return true;
}

static size_t position(const struct lattice *lattice, size_t state, size_t actor)
{
    return state / lattice->stride[actor] % (lattice->count[actor] + 1);
}

/* Can ACTOR move in STATE? */
static bool may_move(const struct lattice *lattice, size_t state, size_t actor)
{
    const size_t at = position(lattice, state, actor);
    if (at == lattice->count[actor])
        return false;
    const uint16_t *need = &lattice->need[lattice->of[actor][at] * lattice->actors];
    for (size_t i = 0; i < lattice->actors; i++)
        if (i != actor && position(lattice, state, i) < need[i])
            return false;
    return true;
}

static void add(int64_t *sum, int64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum))
        *sum = INT64_MAX;
}

/* Adds the ways that begin with a move of ACTOR in STATE, after a move of LAST. */
static void add_ways(struct lattice *lattice, size_t state, size_t last, size_t actor)
{
    const size_t kinds = lattice->most_switches + 1, here = state * lattice->actors + last,
                 then = (state + lattice->stride[actor]) * lattice->actors + actor, more = last != actor;
    for (size_t i = 0; i < kinds; i++) {
        const size_t to = i + more < kinds ? i + more : kinds - 1;
        add(&lattice->ways[here * kinds + to], lattice->ways[then * kinds + i]);
    }
    if (lattice->fewest[then] != FAR && lattice->fewest[then] + more < lattice->fewest[here])
        lattice->fewest[here] = (uint16_t)(lattice->fewest[then] + more);
}

/* False: out of memory. */
static bool find_ways(struct lattice *lattice)
{
    const size_t places = lattice->states * lattice->actors, kinds = lattice->most_switches + 1;
    lattice->ways = calloc(places * kinds, sizeof *lattice->ways);
    lattice->fewest = malloc(places * sizeof *lattice->fewest);
    if (!lattice->ways || !lattice->fewest)
        return false;
    memset(lattice->fewest, 0xff, places * sizeof *lattice->fewest);
    for (size_t last = 0; last < lattice->actors; last++) {
        lattice->ways[(places - lattice->actors + last) * kinds] = 1;
        lattice->fewest[places - lattice->actors + last] = 0;
    }
    for (size_t state = lattice->states - 1; state-- > 0;)
        for (size_t actor = 0; actor < lattice->actors; actor++)
            for (size_t last = 0; may_move(lattice, state, actor) && last < lattice->actors; last++)
                add_ways(lattice, state, last, actor);
    return true;
}

/* The context switches from STATE on, if ACTOR moves now; FAR: it cannot. LAST is LATTICE->ACTORS at the beginning. */
static size_t fewest_if(const struct lattice *lattice, size_t state, size_t last, size_t actor)
{
    if (!may_move(lattice, state, actor))
        return FAR;
    return lattice->fewest[(state + lattice->stride[actor]) * lattice->actors + actor] +
           (size_t)(last != lattice->actors && last != actor);
}

static void write_simplest(const struct lattice *lattice, struct transition *ret_simplest)
{
    size_t last = lattice->actors;
    for (size_t state = 0, i = 0; i < lattice->traced->count; i++) {
        size_t best = 0;
        for (size_t actor = 1; actor < lattice->actors; actor++)
            if (fewest_if(lattice, state, last, actor) < fewest_if(lattice, state, last, best))
                best = actor;
        ret_simplest[i] = lattice->traced->transitions[lattice->of[best][position(lattice, state, best)]];
        state += lattice->stride[best];
        last = best;
    }
}

/* A schedule begins with a move, which is no switch. */
static int64_t sum_ways(const struct lattice *lattice, uint64_t *ret_by_switches)
{
    const size_t kinds = lattice->most_switches + 1;
    int64_t all = 0;
    for (size_t actor = 0; actor < lattice->actors; actor++)
        for (size_t i = 0; may_move(lattice, 0, actor) && i < kinds; i++) {
            const int64_t ways =
                lattice->ways[(lattice->stride[actor] * lattice->actors + actor) * kinds + i];
            add(&all, ways);
            if (ret_by_switches)
                ret_by_switches[i] += (uint64_t)ways;
        }
    return all;
}

int64_t alike_schedules(const struct traced *traced, uint64_t *ret_by_switches, size_t size,
                        struct transition *ret_simplest)
{
    struct lattice lattice = {.traced = traced};
    int64_t count = -1;
    if (traced->count == 0)
        return 1;
    if (ret_by_switches)
        lattice.most_switches = (traced->count < size ? traced->count : size) - 1;
    if (list_actors(&lattice) && order_transitions(&lattice) && find_ways(&lattice)) {
        count = sum_ways(&lattice, ret_by_switches);
        write_simplest(&lattice, ret_simplest);
    }
    for (size_t i = 0; i < lattice.actors; i++)
        free(lattice.of[i]);
    free(lattice.need);
    free(lattice.ways);
    free(lattice.fewest);
    return count;
}
