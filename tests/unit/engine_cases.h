/* Cases for tests of the engine: a line of calls and steps, as engine_fakes.h has them, and what the order must come to.
 * One file of a program includes it, as it does the fakes. */
#ifndef OVERSELL_TESTS_ENGINE_CASES_H
#define OVERSELL_TESTS_ENGINE_CASES_H

#include "tests/unit/engine_fakes.h"

/* Parts of many lines. */
#define TAKE "read READ write WRITE"
#define LOST_RACE "ready begin read READ write=conflict rollback "

struct expected {
    const char *shape;
    bool keyed;
    enum outcome outcome;
    const char *script;
    int tries;           /* 0: one */
    const char *backend; /* NULL: none, that is: nobody is away */
    bool lost;           /* lock_lost_after_commit */
};

static const struct shape *find_shape(const char *name)
{
    for (size_t i = 0; i < COUNT(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    fail_msg("there is no shape '%s'", name);
    return NULL;
}

/* A line without its steps: what is left when nobody observes. */
static void without_steps(const char *script, char *to, size_t size)
{
    to[0] = '\0';
    while (*script) {
        size_t length = strcspn(script, " ");
        char word[60];
        snprintf(word, sizeof word, "%.*s", (int)length, script);
        if (!isupper((unsigned char)word[0]))
            fake_append(to, size, word);
        script += length + (script[length] == ' ');
    }
}

static int mismatches; /* of this test: they are printed as they come, and fail it at its end */

static int forget_mismatches(void **state)
{
    (void)state;
    mismatches = 0;
    return 0;
}

static int has_no_mismatches(void **state)
{
    (void)state;
    return mismatches;
}

static void compare(const struct expected *e, const char *script, const struct order_result *result,
                    bool observed)
{
    const char *backend = result->outcome == ORDER_BACKEND_UNAVAILABLE && result->backend ? result->backend
                                                                                          : "none";
    const char *expected_backend = e->backend ? e->backend : "none";
    int tries = e->tries ? e->tries : 1;
    if (strcmp(fake.log, script) == 0 && !fake.broken[0] && result->outcome == e->outcome &&
        result->tries == tries && strcmp(backend, expected_backend) == 0 &&
        result->lock_lost_after_commit == e->lost)
        return;
    mismatches++;
    print_error("%s%s%s\n  expected: %s\n            %s, tries %d, backend %s%s\n  got:      %s\n"
                "            %s, tries %d, backend %s%s\n  broken:   %s\n",
                e->shape, e->keyed ? ", keyed" : "", observed ? "" : ", unobserved", script,
                outcome_name(e->outcome), tries, expected_backend, e->lost ? ", lock lost" : "", fake.log,
                outcome_name(result->outcome), result->tries, backend,
                result->lock_lost_after_commit ? ", lock lost" : "",
                fake.broken[0] ? fake.broken : "no rule");
}

/* Plays the case, watched and unwatched. SETUP may change what the fakes say. */
static void play_with(const struct expected *e, void (*setup)(void), struct fake_order *ret_order)
{
    char silent[4096];
    without_steps(e->script, silent, sizeof silent);
    for (int observed = 0; observed <= 1; observed++) {
        const char *script = observed ? e->script : silent;
        fake_prepare(ret_order, find_shape(e->shape), e->keyed, observed);
        fake.script = script;
        if (setup)
            setup();
        fake_place(ret_order);
        compare(e, script, &ret_order->placing.result, observed);
    }
}

static void play(const struct expected *e)
{
    struct fake_order order;
    play_with(e, NULL, &order);
}

static void play_all(const struct expected *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        play(&cases[i]);
}

#define ENGINE_TEST(test) cmocka_unit_test_setup_teardown(test, forget_mismatches, has_no_mismatches)

#endif
