/* What is around a search: the loop with its limits, the counterexamples that are kept, and circles of waits. */
#include "tests/unit/unit.h"

#include "loadtest/search/counterexamples.h"
#include "loadtest/search/run_search.h"
#include "loadtest/search/waits.h"

/* Two actors with one step each, so two schedules. */
struct pair {
    bool done[2];
    unsigned started, differs_in; /* the number of the schedule whose first choice is another one; 0: none */
    unsigned ran, most, again, stops_at;
    bool may_repeat;
};

static bool start(void *self)
{
    struct pair *pair = self;
    pair->done[0] = pair->done[1] = false;
    pair->started++;
    return true;
}

static size_t enabled(void *self, struct transition *ret_transitions)
{
    const struct pair *pair = self;
    size_t count = 0;
    for (uint8_t i = 0; i < 2; i++)
        if (!pair->done[i] && !(pair->started == pair->differs_in && i == 0))
            ret_transitions[count++] = (struct transition){i, TRANSITION_STEP};
    return count;
}

static bool apply(void *self, struct transition transition)
{
    ((struct pair *)self)->done[transition.actor] = true;
    return true;
}

static bool end(void *self)
{
    (void)self;
    return true;
}

static bool goes_on(void *self)
{
    const struct pair *pair = self;
    return pair->ran < pair->most;
}

static bool ran(void *self)
{
    struct pair *pair = self;
    return ++pair->ran != pair->stops_at;
}

static bool again(void *self, enum search_outcome why)
{
    struct pair *pair = self;
    assert_int_equal(why, SEARCH_DIFFERS);
    pair->again++;
    return pair->may_repeat;
}

static enum search_outcome run(struct pair *pair, int64_t until_us)
{
    static struct search search; /* large */
    const struct program program = {
        .self = pair, .start = start, .enabled = enabled, .apply = apply, .end = end};
    const struct search_caller caller = {pair, until_us, goes_on, ran, again};
    search = (struct search){.bound = NO_BOUND};
    return run_search(&search, &program, &caller);
}

static void a_search_ends_with_its_schedules_or_at_a_limit(void **state)
{
    static const struct {
        const char *what;
        struct pair pair;
        int64_t until_us;
        enum search_outcome outcome;
        unsigned ran, again;
    } SEARCHES[] = {
        {"all", {.most = 9}, INT64_MAX, SEARCH_DONE, 2, 0},
        {"as many as are wanted", {.most = 1}, INT64_MAX, SEARCH_RAN, 1, 0},
        {"the time is over", {.most = 9}, 0, SEARCH_RAN, 0, 0},
        {"a reason to stop", {.most = 9, .stops_at = 1}, INT64_MAX, SEARCH_RAN, 1, 0},
        {"one differs once", {.most = 9, .differs_in = 2, .may_repeat = true}, INT64_MAX, SEARCH_DONE, 2, 1},
        {"and may not be repeated", {.most = 9, .differs_in = 2}, INT64_MAX, SEARCH_DIFFERS, 1, 1},
    };
    for (size_t i = 0; i < COUNT(SEARCHES); i++) {
        struct pair pair = SEARCHES[i].pair;
        enum search_outcome outcome = run(&pair, SEARCHES[i].until_us);
        if (outcome != SEARCHES[i].outcome || pair.ran != SEARCHES[i].ran || pair.again != SEARCHES[i].again)
            fail_msg("%s: %d, ran %u, again %u", SEARCHES[i].what, (int)outcome, pair.ran, pair.again);
    }
}

static void the_worst_and_simplest_are_kept(void **state)
{
    static struct counterexamples kept = {.most = 2}; /* large */
    static const struct counterexample SEEN[] = {{.badness = 1, .effort = 5, .length = 1},
                                                 {.badness = 1, .effort = 5, .length = 2},
                                                 {.badness = 1, .effort = 3, .length = 3},
                                                 {.badness = 2, .effort = 9, .length = 4},
                                                 {.badness = 0, .effort = 0, .length = 5}};
    static const size_t PLACES[] = {0, 1, 0, 0, 2};
    for (size_t i = 0; i < COUNT(SEEN); i++)
        assert_int_equal(counterexamples_keep(&kept, &SEEN[i]), PLACES[i]);
    assert_int_equal(kept.count, 2);
    assert_int_equal(kept.item[0].length, 4);
    assert_int_equal(kept.item[1].length, 3);
}

static void a_circle_of_waits_is_found(void **state)
{
    static const struct {
        uint32_t waits_for[4];
        bool circle;
    } WAITS[] = {
        {{0, 0, 0, 0}, false}, {{2, 1, 0, 0}, true},  {{2, 4, 8, 0}, false},
        {{2, 4, 8, 1}, true},  {{6, 4, 0, 1}, false}, {{1u << 31, 1, 0, 0}, false},
    };
    for (size_t i = 0; i < COUNT(WAITS); i++)
        assert_int_equal(waits_have_circle(WAITS[i].waits_for, 4), WAITS[i].circle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_ends_with_its_schedules_or_at_a_limit),
        cmocka_unit_test(the_worst_and_simplest_are_kept),
        cmocka_unit_test(a_circle_of_waits_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
