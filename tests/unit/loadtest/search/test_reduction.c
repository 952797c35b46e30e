/* Random programs: the search with footprints finds the outcomes of the search without them with fewer runs, and knows how many schedules lead
 * to each, and the simplest of these. */
#include "tests/unit/unit.h"

#include "base/hash.h"
#include "base/prng.h"

#include "loadtest/search/depth_first_search.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PROGRAMS = 3000, STEPS_MOST = 30, CELLS = 3, LOCKS = 2, OUTCOMES_MOST = 2000 };

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
    toy->footprint = (struct footprint){0};
    footprint_add(&toy->footprint, action->what != READ, is_lock, 1 + action->at);
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

/* What leads to one outcome. */
struct found {
    uint64_t outcome;
    int64_t schedules;
    struct transition simplest[DEPTH_MAX];
    unsigned switches;
};

/* All outcomes of a program, sorted. */
struct results {
    struct found found[OUTCOMES_MOST];
    size_t count;
    unsigned runs;
    uint64_t by_switches[DEPTH_MAX];
};

static int compare(const void *one, const void *other)
{
    const uint64_t a = ((const struct found *)one)->outcome, b = ((const struct found *)other)->outcome;
    return (a > b) - (a < b);
}

/* Is ONE shown rather than OTHER? Of schedules that are equally simple the one that a search without footprints comes to first. */
static bool is_simpler(const struct toy *toy, const struct transition *one, unsigned switches,
                       const struct found *other)
{
    size_t length = 0;
    for (unsigned i = 0; i < toy->actors; i++)
        length += toy->done[i];
    return switches < other->switches ||
           (switches == other->switches && memcmp(one, other->simplest, length * sizeof *one) < 0);
}

static void count_outcome(struct results *results, const struct toy *toy)
{
    struct transition simplest[DEPTH_MAX];
    const int64_t alike = search_alike(&search, results->by_switches, DEPTH_MAX, simplest);
    const unsigned switches = context_switches(simplest, search.length);
    uint64_t outcome = hash_add(HASH_OF_NOTHING, toy->cell, sizeof toy->cell);
    outcome = hash_add(hash_add(outcome, toy->seen, sizeof toy->seen), toy->done, sizeof toy->done);
    struct found *found = results->found;
    while (found < results->found + results->count && found->outcome != outcome)
        found++;
    assert_true(found < results->found + OUTCOMES_MOST);
    if (found == results->found + results->count) {
        *found = (struct found){.outcome = outcome, .switches = UINT16_MAX};
        results->count++;
    }
    found->schedules += alike;
    if (is_simpler(toy, simplest, switches, found)) {
        found->switches = switches;
        memcpy(found->simplest, simplest, sizeof simplest);
    }
}

static void run_all(struct toy *toy, struct results *ret_results)
{
    const struct program program = {.self = toy,
                                    .start = start,
                                    .enabled = enabled,
                                    .apply = apply,
                                    .end = end,
                                    .footprint = toy->reduces ? footprint : NULL,
                                    .stop = end};
    memset(ret_results, 0, sizeof *ret_results);
    search = (struct search){.bound = NO_BOUND};
    for (enum search_outcome ran; (ran = search_run(&search, &program)) != SEARCH_DONE;) {
        assert_true(ran == SEARCH_RAN || ran == SEARCH_PRUNED);
        if (ran == SEARCH_RAN)
            count_outcome(ret_results, toy);
        ret_results->runs += ran == SEARCH_RAN;
    }
    assert_true(search_coverage(&search) == 1.0); /* exactly */
    assert_false(search.uncounted);
    qsort(ret_results->found, ret_results->count, sizeof ret_results->found[0], compare);
}

static bool same_results(const struct results *one, const struct results *other)
{
    bool same = one->count == other->count &&
                memcmp(one->by_switches, other->by_switches, sizeof one->by_switches) == 0;
    for (size_t i = 0; same && i < one->count; i++) {
        const struct found *a = &one->found[i], *b = &other->found[i];
        same = a->outcome == b->outcome && a->schedules == b->schedules && a->switches == b->switches &&
               memcmp(a->simplest, b->simplest, search.length * sizeof a->simplest[0]) == 0;
    }
    return same;
}

static void test_the_same_outcomes(void **state)
{
    static struct results whole, reduced;
    const char *given = getenv("SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    uint64_t random = random_from(seed);
    unsigned all = 0, fewer = 0;
    for (int i = 0; i < PROGRAMS; i++) {
        struct toy toy;
        make(&toy, &random);
        run_all(&toy, &whole);
        all += whole.runs;
        toy.reduces = true;
        run_all(&toy, &reduced);
        fewer += reduced.runs;
        if (!same_results(&whole, &reduced))
            fail_msg("program %d of SEED=%" PRIu64 " has other outcomes", i, seed);
    }
    print_message("%u schedules instead of %u (SEED=%" PRIu64 ")\n", fewer, all, seed);
    assert_true(fewer < all / 2);
}

/* Two requests of thirty statements, which meet at one row: of 10^17 schedules two lead to different outcomes. */
static void test_a_long_program(void **state)
{
    static struct results results;
    struct toy toy = {.actors = 2, .steps = {30, 30}, .reduces = true};
    for (unsigned actor = 0; actor < 2; actor++)
        for (unsigned i = 0; i < 30; i++)
            toy.action[actor][i] = (struct action){i == 15 ? INCREMENT : READ, i == 15 ? 0 : 1 + i % 2};
    run_all(&toy, &results);
    assert_int_equal(results.count, 2);
    assert_int_equal(results.runs, 2);
    assert_int_equal(results.found[0].schedules + results.found[1].schedules,
                     INT64_C(118264581564861424)); /* 60! / (30! × 30!) */
    assert_int_equal(results.found[0].switches, 1);
    print_message("%u schedules and %u that were stopped\n", results.runs, (unsigned)search.pruned);
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
