/* The search on a toy: actors that do nothing but count their steps, some of which one of them may take from another. */
#include "tests/unit/unit.h"

#include "loadtest/search/depth_first_search.h"

struct toy {
    unsigned actors, steps[ACTORS_MAX]; /* each has to make */
    unsigned done[ACTORS_MAX];
    bool exclusive; /* only one at a time is between its first step and its last */
    bool fickle;    /* the first move of every second schedule is not possible */
    bool doubtful;  /* every second schedule is */
    bool forgetful; /* what is seen after the first move is another thing in every second schedule */
    unsigned started;
    char made[DEPTH_MAX];
    size_t length;
};

static bool start(void *self)
{
    struct toy *toy = self;
    memset(toy->done, 0, sizeof toy->done);
    toy->length = 0;
    toy->started++;
    return true;
}

static bool is_inside(const struct toy *toy, unsigned actor)
{
    return toy->done[actor] > 0 && toy->done[actor] < toy->steps[actor];
}

static bool can_go_on(const struct toy *toy, unsigned actor)
{
    if (toy->fickle && toy->started % 2 == 0 && toy->length == 0 && actor == 0)
        return false;
    for (unsigned i = 0; toy->exclusive && i < toy->actors; i++)
        if (i != actor && is_inside(toy, i))
            return false;
    return toy->done[actor] < toy->steps[actor];
}

static size_t enabled(void *self, struct transition *ret_transitions)
{
    const struct toy *toy = self;
    size_t count = 0;
    for (unsigned i = 0; i < toy->actors; i++)
        if (can_go_on(toy, i))
            ret_transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_STEP};
    return count;
}

static bool apply(void *self, struct transition transition)
{
    struct toy *toy = self;
    toy->done[transition.actor]++;
    toy->made[toy->length++] = (char)('A' + transition.actor);
    toy->made[toy->length] = '\0';
    return true;
}

static bool end(void *self)
{
    (void)self;
    return true;
}

static size_t remaining(void *self, unsigned actor)
{
    const struct toy *toy = self;
    return toy->steps[actor] - toy->done[actor];
}

static bool is_doubtful(void *self)
{
    const struct toy *toy = self;
    return toy->doubtful && toy->started % 2 == 1;
}

/* A forgetful one sees something else in every second schedule, after the same first move. */
static uint64_t fingerprint(void *self)
{
    const struct toy *toy = self;
    return toy->length + (toy->forgetful && toy->length == 1 ? toy->started % 2 * 100 : 0);
}

static struct search search;

static enum search_outcome run(struct toy *toy)
{
    const struct program program = {.self = toy,
                                    .start = start,
                                    .enabled = enabled,
                                    .apply = apply,
                                    .end = end,
                                    .remaining = remaining,
                                    .is_doubtful = is_doubtful,
                                    .fingerprint = fingerprint};
    return search_run(&search, &program);
}

static void begin_all(int bound)
{
    search = (struct search){.bound = bound};
}

static void begin_samples(unsigned depth)
{
    search = (struct search){.bound = NO_BOUND, .samples = true, .random = 42, .pct.depth = depth};
}

/* Runs all there are, and checks that the coverage grows from none to all by what each schedule weighs. */
static unsigned run_all(struct toy *toy, int bound)
{
    unsigned schedules = 0;
    double before = 0;
    begin_all(bound);
    while (run(toy) == SEARCH_RAN) {
        double weight = 1;
        for (size_t i = 0; i < search.length; i++)
            weight /= search.path[i].count;
        schedules++;
        double coverage = search_coverage(&search);
        assert_true(coverage > before && coverage - before - weight < 1e-12 &&
                    before + weight - coverage < 1e-12);
        before = coverage;
    }
    assert_true(search.done);
    assert_true(search_coverage(&search) == 1.0); /* exactly */
    return schedules;
}

static void every_interleaving_is_run_once(void **state)
{
    struct toy four = {.actors = 2, .steps = {4, 4}}, six = {.actors = 2, .steps = {6, 6}};
    struct toy seven = {.actors = 2, .steps = {7, 7}}, three = {.actors = 3, .steps = {2, 2, 2}};
    assert_int_equal(run_all(&four, NO_BOUND), 70);
    assert_int_equal(run_all(&six, NO_BOUND), 924);
    assert_int_equal(run_all(&seven, NO_BOUND), 3432);
    assert_int_equal(run_all(&three, NO_BOUND), 90);
}

static void no_interleaving_is_run_twice(void **state)
{
    static char seen[70][DEPTH_MAX];
    struct toy toy = {.actors = 2, .steps = {4, 4}};
    begin_all(NO_BOUND);
    for (size_t n = 0; run(&toy) == SEARCH_RAN; n++) {
        for (size_t i = 0; i < n; i++)
            assert_string_not_equal(seen[i], toy.made);
        memcpy(seen[n], toy.made, sizeof toy.made);
    }
}

static void who_must_wait_cannot_be_moved(void **state)
{
    struct toy two = {.actors = 2, .steps = {4, 4}, .exclusive = true};
    struct toy three = {.actors = 3, .steps = {3, 3, 3}, .exclusive = true};
    assert_int_equal(run_all(&two, NO_BOUND), 2);
    assert_int_equal(run_all(&three, NO_BOUND), 6);
}

static void an_order_has_one_schedule_and_none_none(void **state)
{
    struct toy one = {.actors = 1, .steps = {5}}, none = {.actors = 0};
    assert_int_equal(run_all(&one, NO_BOUND), 1);
    assert_int_equal(run_all(&none, NO_BOUND), 1);
}

/* With no preemption an order runs to its end: two schedules. With one, either is cut once, anywhere. */
static void a_bound_limits_preemptions(void **state)
{
    struct toy toy = {.actors = 2, .steps = {4, 4}};
    assert_int_equal(run_all(&toy, 0), 2);
    assert_int_equal(run_all(&toy, 1), 2 + 2 * 3);
    assert_int_equal(run_all(&toy, 7), 70);
}

static void a_bound_tells_whether_it_kept_some_out(void **state)
{
    struct toy toy = {.actors = 2, .steps = {4, 4}};
    unsigned most = 0;
    begin_all(2);
    while (run(&toy) == SEARCH_RAN)
        most = search_preemptions(&search) > most ? search_preemptions(&search) : most;
    assert_int_equal(most, 2);
    assert_true(search.cut);
    begin_all(7);
    while (run(&toy) == SEARCH_RAN)
        ;
    assert_false(search.cut);
}

static void a_world_that_differs_is_noticed(void **state)
{
    struct toy toy = {.actors = 2, .steps = {2, 2}, .fickle = true};
    begin_all(NO_BOUND);
    assert_int_equal(run(&toy), SEARCH_RAN);
    assert_int_equal(run(&toy), SEARCH_DIFFERS);
    assert_int_equal(run(&toy), SEARCH_RAN); /* the same schedule, which was still due */
    assert_string_equal(toy.made, "ABAB");
}

/* 6 interleavings of two and two: each about a sixth of many samples, and the same from the same seed. */
static void the_same_moves_with_other_events_are_noticed(void **state)
{
    struct toy toy = {.actors = 2, .steps = {2, 2}, .forgetful = true};
    begin_all(NO_BOUND);
    assert_int_equal(run(&toy), SEARCH_RAN);
    assert_int_equal(run(&toy), SEARCH_DIFFERS);
    assert_int_equal(run(&toy), SEARCH_RAN);
}

static void samples_are_uniform_and_repeatable(void **state)
{
    enum { SAMPLES = 12000 };
    static char first[64];
    unsigned counted[1 << 4] = {0}, kinds = 0;
    struct toy toy = {.actors = 2, .steps = {2, 2}};
    for (int round = 0; round < 2; round++) {
        begin_samples(0);
        for (int i = 0; i < SAMPLES; i++) {
            assert_int_equal(run(&toy), SEARCH_RAN);
            unsigned word = 0;
            for (size_t k = 0; k < toy.length; k++)
                word = word * 2 + (toy.made[k] == 'B');
            counted[word]++;
            if (i < (int)sizeof first && round == 0)
                first[i] = (char)word;
            else if (i < (int)sizeof first)
                assert_int_equal(first[i], word);
        }
    }
    for (size_t i = 0; i < COUNT(counted); i++) {
        kinds += counted[i] > 0;
        assert_true(counted[i] == 0 ||
                    (counted[i] > SAMPLES / 3 * 9 / 10 && counted[i] < SAMPLES / 3 * 11 / 10));
    }
    assert_int_equal(kinds, 6);
}

/* By priorities alone an order runs to its end; one change cuts one of them, anywhere. */
static void pct_finds_every_schedule_of_its_depth_and_no_others(void **state)
{
    enum { SAMPLES = 4000 };
    static const unsigned EXPECTED[] = {[1] = 2, [2] = 2 + 2 * 3};
    struct toy toy = {.actors = 2, .steps = {4, 4}};
    for (unsigned depth = 1; depth < COUNT(EXPECTED); depth++) {
        bool seen[1 << 8] = {0};
        unsigned kinds = 0;
        begin_samples(depth);
        for (int i = 0; i < SAMPLES; i++) {
            assert_int_equal(run(&toy), SEARCH_RAN);
            unsigned word = 0;
            for (size_t k = 0; k < toy.length; k++)
                word = word * 2 + (toy.made[k] == 'B');
            kinds += !seen[word];
            seen[word] = true;
            assert_true(search_preemptions(&search) < depth);
        }
        assert_int_equal(kinds, EXPECTED[depth]);
    }
}

/* Of four orders of eight steps: all of A between the last two of D, which few interleavings have. */
static bool has_bug(const struct toy *toy)
{
    const char *last = strrchr(toy->made, 'D'), *before = last - 1;
    while (*before != 'D')
        before--;
    return strchr(toy->made, 'A') > before && strrchr(toy->made, 'A') < last;
}

static unsigned count_bugs(unsigned depth)
{
    struct toy toy = {.actors = 4, .steps = {8, 8, 8, 8}};
    unsigned bugs = 0;
    begin_samples(depth);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(run(&toy), SEARCH_RAN);
        bugs += has_bug(&toy);
    }
    return bugs;
}

static void pct_finds_what_uniform_samples_hardly_do(void **state)
{
    unsigned uniform = count_bugs(0), by_priority = count_bugs(2);
    assert_true(by_priority >= 3000 / (4 * 32)); /* the paper's promise */
    assert_true(by_priority > 10 * uniform);
}

static void what_is_doubtful_is_run_again_and_counts_once(void **state)
{
    struct toy toy = {.actors = 2, .steps = {2, 2}, .doubtful = true};
    char doubted[DEPTH_MAX];
    unsigned schedules = 0;
    begin_all(NO_BOUND);
    for (;;) {
        enum search_outcome outcome = run(&toy);
        if (outcome == SEARCH_DONE)
            break;
        assert_int_equal(outcome, SEARCH_DOUBTFUL);
        memcpy(doubted, toy.made, sizeof doubted);
        assert_int_equal(run(&toy), SEARCH_RAN);
        assert_string_equal(toy.made, doubted);
        schedules++;
    }
    assert_int_equal(schedules, 6);
}

/* Drawing another schedule instead would count one that fails less often than it is drawn. */
static void a_doubtful_sample_is_run_again_and_counts_once(void **state)
{
    char doubted[DEPTH_MAX];
    for (unsigned depth = 0; depth <= 2; depth++) {
        struct toy toy = {.actors = 3, .steps = {3, 3, 3}, .doubtful = true};
        begin_samples(depth);
        for (int i = 0; i < 50; i++) {
            assert_int_equal(run(&toy), SEARCH_DOUBTFUL);
            memcpy(doubted, toy.made, sizeof doubted);
            assert_int_equal(run(&toy), SEARCH_RAN);
            assert_string_equal(toy.made, doubted);
        }
    }
}

/* A doubtful sample that an accident has caused goes another way when it is run again: it goes on from there at random. */
static void a_doubtful_sample_may_go_another_way(void **state)
{
    struct toy toy = {.actors = 2, .steps = {2, 2}, .doubtful = true, .forgetful = true};
    begin_samples(0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(run(&toy), SEARCH_DOUBTFUL);
        char first = toy.made[0];
        assert_int_equal(run(&toy), SEARCH_RAN);
        assert_int_equal(toy.made[0], first);
    }
}

static void switches_are_counted(void **state)
{
    const struct transition transitions[] = {{0, 0}, {0, 0}, {1, 0}, {0, 0}, {0, 0}};
    assert_int_equal(context_switches(transitions, 0), 0);
    assert_int_equal(context_switches(transitions, 2), 0);
    assert_int_equal(context_switches(transitions, 3), 1);
    assert_int_equal(context_switches(transitions, 5), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_interleaving_is_run_once),
        cmocka_unit_test(no_interleaving_is_run_twice),
        cmocka_unit_test(who_must_wait_cannot_be_moved),
        cmocka_unit_test(an_order_has_one_schedule_and_none_none),
        cmocka_unit_test(a_bound_limits_preemptions),
        cmocka_unit_test(a_bound_tells_whether_it_kept_some_out),
        cmocka_unit_test(a_world_that_differs_is_noticed),
        cmocka_unit_test(the_same_moves_with_other_events_are_noticed),
        cmocka_unit_test(samples_are_uniform_and_repeatable),
        cmocka_unit_test(pct_finds_every_schedule_of_its_depth_and_no_others),
        cmocka_unit_test(pct_finds_what_uniform_samples_hardly_do),
        cmocka_unit_test(what_is_doubtful_is_run_again_and_counts_once),
        cmocka_unit_test(a_doubtful_sample_is_run_again_and_counts_once),
        cmocka_unit_test(a_doubtful_sample_may_go_another_way),
        cmocka_unit_test(switches_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
