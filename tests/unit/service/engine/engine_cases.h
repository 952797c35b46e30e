/* Cases for tests of the engine: a line of calls and steps, as engine_fakes.h has them, and what the order must come to.
 * One file of a program includes it, as it does the fakes. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_ENGINE_ENGINE_CASES_H
#define OVERSELL_TESTS_UNIT_SERVICE_ENGINE_ENGINE_CASES_H

#include "tests/unit/service/engine/engine_fakes.h"

/* Parts of many lines. */
#define TAKE "read READ write WRITE"
#define SELL TAKE " insert INSERT"
#define LOCKED "ready acquire LOCK begin "
#define UNLOCKED " release UNLOCK"
#define INSIDE "ready begin acquire LOCK "
#define FENCED "ready acquire LOCK fence FENCE begin "
#define TWICE LOCKED "acquire "
#define UNLOCKED_TWICE " release release UNLOCK"
#define TAKEN TWICE TAKE " commit COMMIT-STOCK" UNLOCKED_TWICE " " /* the first of two transactions */
#define LOST_RACE "ready begin read READ write=conflict rollback "

/* The engine must make as many tries as the script has "ready". */
struct expected {
    const char *shape;
    bool keyed;
    enum outcome outcome;
    const char *script;
    const char *backend; /* of ORDER_BACKEND_UNAVAILABLE; NULL: "postgresql" */
    bool lost;           /* lock_lost_after_commit */
    void (*setup)(void); /* changes what the fakes say; or NULL */
};

static const struct shape *find_shape(const char *name)
{
    for (size_t i = 0; i < COUNT(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    fail_msg("there is no shape '%s'", name);
    return NULL;
}

/* A line without its steps: what is left when nobody observes. Returns the number of tries. */
static int without_steps(const char *script, char *to, size_t size)
{
    int tries = 0;
    to[0] = '\0';
    while (*script) {
        size_t length = strcspn(script, " ");
        char word[60];
        snprintf(word, sizeof word, "%.*s", (int)length, script);
        tries += strncmp(word, "ready", 5) == 0;
        if (!isupper((unsigned char)word[0]))
            fake_append(to, size, word);
        script += length + (script[length] == ' ');
    }
    return tries;
}

static int mismatches; /* of this test: they are printed as they come, and fail it at its end */

static int forget_mismatches(void **state)
{
    mismatches = 0;
    return 0;
}

static int has_no_mismatches(void **state)
{
    return mismatches;
}

static void compare(const struct expected *e, const char *script, int tries,
                    const struct order_result *result)
{
    bool is_away = e->outcome == ORDER_BACKEND_UNAVAILABLE;
    const char *expected_backend = !is_away ? "none" : e->backend ? e->backend : "postgresql";
    const char *backend = result->outcome == ORDER_BACKEND_UNAVAILABLE && result->backend ? result->backend
                                                                                          : "none";
    if (strcmp(fake.log, script) == 0 && !fake.broken[0] && result->outcome == e->outcome &&
        result->tries == tries && strcmp(backend, expected_backend) == 0 &&
        result->lock_lost_after_commit == e->lost)
        return;
    mismatches++;
    print_error("%s%s\n  expected: %s\n            %s, tries %d, backend %s%s\n  got:      %s\n"
                "            %s, tries %d, backend %s%s\n  broken:   %s\n",
                e->shape, e->keyed ? ", keyed" : "", script, outcome_name(e->outcome), tries,
                expected_backend, e->lost ? ", lock lost" : "", fake.log, outcome_name(result->outcome),
                result->tries, backend, result->lock_lost_after_commit ? ", lock lost" : "",
                fake.broken[0] ? fake.broken : "no rule");
}

/* Plays the case, unobserved and observed, and returns the result, which is valid until the next case. */
static const struct order_result *play(const struct expected *e)
{
    static struct fake_order order;
    char silent[4096];
    int tries = without_steps(e->script, silent, sizeof silent);
    for (int observed = 0; observed <= 1; observed++) {
        const char *script = observed ? e->script : silent;
        fake_prepare(&order, find_shape(e->shape), e->keyed, observed);
        fake.script = script;
        if (e->setup)
            e->setup();
        fake_place(&order);
        compare(e, script, tries, &order.placing.result);
    }
    return &order.placing.result;
}

#define PLAY(...) play(&(const struct expected){__VA_ARGS__})

static void play_all(const struct expected *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)play(&cases[i]);
}

/* ---- where a call may fail -------------------------------------------------------------------------------- */

/* Lines with one %s, where a failure may stand. */
static const struct {
    const char *shape;
    bool keyed;
    const char *script;
} points[] = {
    {"plain", false, "ready=%s"},
    {"plain", false, "ready begin read=%s rollback"},
    {"plain", false, "ready begin read READ write=%s rollback"},
    {"plain", false, "ready begin " TAKE " insert=%s rollback"},
    {"plain", false, "ready begin " SELL " commit=%s"},
    {"plain", true, "ready begin key=%s rollback"},
    {"plain", true, "ready begin key read=%s rollback"},
    {"plain", true, "ready begin key " TAKE " insert=%s rollback"},
    {"retry", true, "ready begin key=%s rollback"},

    {"around", false, "ready=%s"},
    {"around", false, "ready acquire=%s"},
    {"around", true, "ready acquire=%s"},
    {"around", false, LOCKED "read=%s rollback" UNLOCKED},
    {"around", false, LOCKED "read READ write=%s rollback" UNLOCKED},
    {"around", false, LOCKED TAKE " insert=%s rollback" UNLOCKED},
    {"around", false, LOCKED SELL " commit=%s" UNLOCKED},
    {"around", true, LOCKED "key=%s rollback" UNLOCKED},
    {"around", true, LOCKED "key read=%s rollback" UNLOCKED},
    {"around", true, LOCKED "key " TAKE " insert=%s rollback" UNLOCKED},
    {"around-retry", false, "ready acquire=%s"},

    {"inside", false, "ready=%s"},
    {"inside", false, "ready begin acquire=%s rollback"},
    {"inside", true, "ready begin key acquire=%s rollback"},
    {"inside", false, INSIDE "read=%s" UNLOCKED " rollback"},
    {"inside", false, INSIDE "read READ write=%s" UNLOCKED " rollback"},
    {"inside", false, INSIDE TAKE " insert=%s" UNLOCKED " rollback"},
    {"inside", false, INSIDE SELL UNLOCKED " commit=%s"},
    {"inside", true, "ready begin key=%s rollback"},
    {"inside", true, "ready begin key acquire LOCK read=%s" UNLOCKED " rollback"},
    {"inside", true, "ready begin key acquire LOCK " TAKE " insert=%s" UNLOCKED " rollback"},
    {"inside-retry", false, "ready begin acquire=%s rollback"},

    {"twice", false, "ready=%s"},
    {"twice", false, "ready acquire=%s"},
    {"twice", false, LOCKED "acquire=%s rollback" UNLOCKED},
    {"twice", true, LOCKED "key acquire=%s rollback" UNLOCKED},
    {"twice", false, TWICE "read=%s rollback" UNLOCKED_TWICE},
    {"twice", false, TWICE "read READ write=%s rollback" UNLOCKED_TWICE},
    {"twice", false, TWICE TAKE " commit=%s" UNLOCKED_TWICE},
    {"twice", false, TAKEN "begin insert=%s rollback acquire give release"},
    {"twice", false, TAKEN "begin insert INSERT commit=%s acquire give release"},
    {"twice", true, LOCKED "key=%s rollback" UNLOCKED},
    {"twice", true, LOCKED "key acquire read=%s rollback" UNLOCKED_TWICE},
    {"twice", true,
     LOCKED "key acquire " TAKE " commit COMMIT-STOCK" UNLOCKED_TWICE
            " begin insert=%s rollback acquire give release"},

    {"in-one", false, "ready=%s"},
    {"in-one", false, "ready one=%s"},
    {"in-one", true, "ready begin key=%s rollback"},
    {"in-one", true, "ready begin key one=%s rollback"},
    {"in-one", true, "ready begin key one commit=%s"},
};

struct failure {
    const char *result;
    enum outcome outcome, keyed_outcome;
    const char *backend;
};

/* Plays each failure at each point where CALL can fail, but no conflict where the engine would try again. ERROR: the
 * result's, or NULL. */
static inline void fail_at(const char *call, const struct failure *failures, size_t count, const char *error)
{
    char place[20], script[400];
    size_t played = 0;
    snprintf(place, sizeof place, " %s=%%s", call);
    for (size_t i = 0; i < COUNT(points); i++) {
        const char *at = strstr(points[i].script, place + (strcmp(call, "ready") == 0));
        for (size_t j = 0; at && j < count; j++) {
            enum outcome outcome = points[i].keyed ? failures[j].keyed_outcome : failures[j].outcome;
            const char *to = strstr(at, "%s");
            if (outcome == ORDER_CONFLICT && find_shape(points[i].shape)->tries_again)
                continue;
            snprintf(script, sizeof script, "%.*s%s%s", (int)(to - points[i].script), points[i].script,
                     failures[j].result, to + 2);
            const struct order_result *result = PLAY(points[i].shape, points[i].keyed, outcome,
                                                     .script = script, .backend = failures[j].backend);
            if (error)
                assert_string_equal(result->error, error);
            played++;
        }
    }
    assert_true(played > 0);
}

#define ENGINE_TEST(test) cmocka_unit_test_setup_teardown(test, forget_mismatches, has_no_mismatches)

#endif
