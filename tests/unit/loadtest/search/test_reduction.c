/* Random programs: the search with footprints finds the outcomes of the search without them, and runs fewer schedules. */
#include "tests/unit/unit.h"

#include "base/hash.h"
#include "base/prng.h"

#include "loadtest/search/depth_first_search.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PROGRAMS = 3000, STEPS_MOST = 30, CELLS = 3, LOCKS = 2, OUTCOMES_MOST = 20000 };

enum what { READ, WRITE, INCREMENT, TAKE, RELEASE };

struct action {
    enum what what;
    unsigned at; /* a cell or a lock */
};

/* Actors whose actions read and write cells, some while they have a lock. */
struct toy {
    unsigned actors, steps[ACTORS_MAX];
    struct action action[ACTORS_MAX][STEPS_MOST];
    bool reduces;
    /* while it runs */
    unsigned done[ACTORS_MAX], holder[LOCKS]; /* HOLDER: actor + 1 */
    uint64_t cell[CELLS], seen[ACTORS_MAX];
    struct footprint footprint;
};

static struct search search;

static void make(struct toy *toy, uint64_t *random)
{
    *toy = (struct toy){.actors = 2 + (unsigned)random_below(random, 2)};
    for (unsigned actor = 0; actor < toy->actors; actor++) {
        struct action *action = toy->action[actor];
        const bool locks = random_below(random, 2) == 0;
        const unsigned lock = (unsigned)random_below(random, LOCKS);
        toy->steps[actor] = 2 + (unsigned)random_below(random, toy->actors == 2 ? 3 : 2);
        for (unsigned i = 0; i < toy->steps[actor]; i++)
            action[i] = (struct action){(enum what)random_below(random, TAKE),
                                        (unsigned)random_below(random, CELLS)};
        if (locks) {
            action[0] = (struct action){TAKE, lock};
            action[toy->steps[actor] - 1] = (struct action){RELEASE, lock};
        }
    }
}

static bool start(void *self)
{
    struct toy *toy = self;
    memset(toy->done, 0, sizeof toy->done);
    memset(toy->holder, 0, sizeof toy->holder);
    memset(toy->cell, 0, sizeof toy->cell);
    memset(toy->seen, 0, sizeof toy->seen);
    return true;
}

static size_t enabled(void *self, struct transition *ret_transitions)
{
    const struct toy *toy = self;
    size_t count = 0;
    for (unsigned i = 0; i < toy->actors; i++) {
        const struct action *next = &toy->action[i][toy->done[i]];
        if (toy->done[i] < toy->steps[i] && (next->what != TAKE || toy->holder[next->at] == 0))
            ret_transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_STEP};
    }
    return count;
}

static bool apply(void *self, struct transition transition)
{
    struct toy *toy = self;
    const unsigned actor = transition.actor;
    const struct action *action = &toy->action[actor][toy->done[actor]++];
    const bool is_lock = action->what == TAKE || action->what == RELEASE;
    uint64_t *cell = &toy->cell[is_lock ? 0 : action->at];
    char name[] = "0";
    name[0] = (char)('0' + action->at);
    toy->footprint = (struct footprint){0};
    footprint_add(&toy->footprint, action->what != READ, is_lock ? "locks" : "cells", name);
    switch (action->what) {
    case READ: toy->seen[actor] = hash_add_number(toy->seen[actor], *cell); break;
    case WRITE: *cell = 100 * (actor + 1) + toy->done[actor]; break;
    case INCREMENT: toy->seen[actor] = hash_add_number(toy->seen[actor], (*cell)++); break;
    case TAKE: toy->holder[action->at] = actor + 1; break;
    case RELEASE: toy->holder[action->at] = 0; break;
    }
    return true;
}

static bool end(void *self)
{
    (void)self;
    return true;
}

static void footprint(void *self, struct footprint *ret_footprint)
{
    *ret_footprint = ((const struct toy *)self)->footprint;
}

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Writes the outcomes of all schedules, each once and sorted, and returns their number. */
static size_t outcomes(struct toy *toy, uint64_t *ret_outcomes, unsigned *ret_schedules)
{
    const struct program program = {.self = toy,
                                    .start = start,
                                    .enabled = enabled,
                                    .apply = apply,
                                    .end = end,
                                    .footprint = toy->reduces ? footprint : NULL,
                                    .stop = end};
    size_t found = 0, kept = 0;
    *ret_schedules = 0;
    search = (struct search){.bound = NO_BOUND};
    for (enum search_outcome ran; (ran = search_run(&search, &program)) != SEARCH_DONE;) {
        assert_true(ran == SEARCH_RAN || ran == SEARCH_PRUNED);
        if (ran == SEARCH_PRUNED)
            continue;
        uint64_t outcome = hash_add(HASH_OF_NOTHING, toy->cell, sizeof toy->cell);
        outcome = hash_add(hash_add(outcome, toy->seen, sizeof toy->seen), toy->done, sizeof toy->done);
        assert_true(found < OUTCOMES_MOST);
        ret_outcomes[found++] = outcome;
        ++*ret_schedules;
    }
    assert_true(search_coverage(&search) == 1.0); /* exactly */
    qsort(ret_outcomes, found, sizeof *ret_outcomes, compare);
    for (size_t i = 0; i < found; i++)
        if (i == 0 || ret_outcomes[i] != ret_outcomes[i - 1])
            ret_outcomes[kept++] = ret_outcomes[i];
    return kept;
}

static void test_the_same_outcomes(void **state)
{
    static uint64_t whole[OUTCOMES_MOST], reduced[OUTCOMES_MOST];
    const char *given = getenv("SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    uint64_t random = random_from(seed);
    unsigned all = 0, fewer = 0, schedules;
    for (int i = 0; i < PROGRAMS; i++) {
        struct toy toy;
        make(&toy, &random);
        const size_t count = outcomes(&toy, whole, &schedules);
        all += schedules;
        toy.reduces = true;
        if (outcomes(&toy, reduced, &schedules) != count ||
            memcmp(whole, reduced, count * sizeof *whole) != 0)
            fail_msg("program %d of SEED=%" PRIu64 " has other outcomes", i, seed);
        fewer += schedules;
    }
    print_message("%u schedules instead of %u (SEED=%" PRIu64 ")\n", fewer, all, seed);
    assert_true(fewer < all / 2);
}

/* Two requests of thirty statements, which meet at one row: 10^17 schedules, of which two lead to different outcomes. */
static void test_a_long_program(void **state)
{
    static uint64_t found[OUTCOMES_MOST];
    struct toy toy = {.actors = 2, .steps = {30, 30}, .reduces = true};
    unsigned schedules;
    for (unsigned actor = 0; actor < 2; actor++)
        for (unsigned i = 0; i < 30; i++)
            toy.action[actor][i] = (struct action){i == 15 ? INCREMENT : READ, i == 15 ? 0 : 1 + i % 2};
    assert_int_equal(outcomes(&toy, found, &schedules), 2);
    assert_int_equal(schedules, 2);
    print_message("%u schedules and %u that were stopped\n", schedules, (unsigned)search.pruned);
    assert_true(search.pruned < 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_outcomes),
        cmocka_unit_test(test_a_long_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
