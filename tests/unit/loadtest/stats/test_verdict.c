/* The verdict: the whole truth table, every input with every other. */
#include "tests/unit/unit.h"

#include "loadtest/stats/verdict.h"

#include <stdio.h>

/* ---- the cases that people think in -------------------------------------------------------------------- */

#define CLEAN .available = true
#define OVERSOLD .available = true, .oversold = true, .books_off = true
#define UNITS_LOST .available = true, .books_off = true

static const struct {
    const char *what;
    struct evidence evidence;
    enum verdict verdict;
} CASES[] = {
    {"safe and clean", {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 1, CLEAN}, VERDICT_OK},
    {"safe and clean with two processes", {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 2, CLEAN}, VERDICT_OK},
    {"safe and oversold", {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 1, OVERSOLD}, VERDICT_BROKEN},
    {"safe, and units are gone", {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 1, UNITS_LOST}, VERDICT_BROKEN},

    {"unsafe and caught", {GUARANTEE_UNSAFE, SHOWN_BY_LOAD, 1, OVERSOLD}, VERDICT_OVERSOLD_AS_EXPECTED},
    {"unsafe and clean", {GUARANTEE_UNSAFE, SHOWN_BY_LOAD, 1, CLEAN}, VERDICT_NOT_CAUGHT},
    {"unsafe, and units are gone", {GUARANTEE_UNSAFE, SHOWN_BY_LOAD, 1, UNITS_LOST}, VERDICT_NOT_CAUGHT},
    {"unsafe by expiry, clean", {GUARANTEE_UNSAFE, SHOWN_BY_EXPIRY, 2, CLEAN}, VERDICT_FLAWED},
    {"unsafe by crash, clean", {GUARANTEE_UNSAFE, SHOWN_BY_CRASH, 1, CLEAN}, VERDICT_FLAWED},
    {"unsafe by expiry, caught all the same",
     {GUARANTEE_UNSAFE, SHOWN_BY_EXPIRY, 1, OVERSOLD},
     VERDICT_OVERSOLD_AS_EXPECTED},

    {"one process, clean", {GUARANTEE_ONE_PROCESS, SHOWN_BY_SECOND_PROCESS, 1, CLEAN}, VERDICT_FLAWED},
    {"one process, oversold", {GUARANTEE_ONE_PROCESS, SHOWN_BY_SECOND_PROCESS, 1, OVERSOLD}, VERDICT_BROKEN},
    {"two processes, caught",
     {GUARANTEE_ONE_PROCESS, SHOWN_BY_SECOND_PROCESS, 2, OVERSOLD},
     VERDICT_OVERSOLD_AS_EXPECTED},
    {"two processes, clean", {GUARANTEE_ONE_PROCESS, SHOWN_BY_SECOND_PROCESS, 2, CLEAN}, VERDICT_NOT_CAUGHT},
    {"a second flaw, by crash, changes nothing",
     {GUARANTEE_ONE_PROCESS, SHOWN_BY_SECOND_PROCESS | SHOWN_BY_CRASH, 2, CLEAN},
     VERDICT_NOT_CAUGHT},

    {"leased and clean", {GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY, 2, CLEAN}, VERDICT_FLAWED},
    {"leased and oversold", {GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY, 2, OVERSOLD}, VERDICT_BROKEN},

    {"no server for it", {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 1, .available = false}, VERDICT_UNAVAILABLE},
    {"somebody else wrote", {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 1, OVERSOLD, .mixed = true}, VERDICT_MIXED},
    {"an answer was lost",
     {GUARANTEE_UNSAFE, SHOWN_BY_LOAD, 1, OVERSOLD, .answers_wrong = true},
     VERDICT_BROKEN},
    {"nothing was sold", {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 1, CLEAN, .sold_nothing = true}, VERDICT_BROKEN},
    {"an amount is wrong",
     {GUARANTEE_UNSAFE, SHOWN_BY_LOAD, 1, OVERSOLD, .amounts_wrong = true},
     VERDICT_BROKEN},

    {"safe, and somebody was refused",
     {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 2, CLEAN, .refused = true},
     VERDICT_BROKEN},
    {"leased, and somebody was refused",
     {GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY, 2, CLEAN, .refused = true},
     VERDICT_BROKEN},
    {"leased, and its lock stays",
     {GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY, 2, CLEAN, .lock_leaked = true},
     VERDICT_BROKEN},
    {"a lost update brings units back",
     {GUARANTEE_UNSAFE, SHOWN_BY_LOAD, 1, OVERSOLD, .refused = true},
     VERDICT_OVERSOLD_AS_EXPECTED},
    {"safe with errors", {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 2, CLEAN, .failed = true}, VERDICT_BROKEN},
    {"leased with errors of its server",
     {GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY, 2, CLEAN, .failed = true},
     VERDICT_FLAWED},
    {"safe with deadlocks", {GUARANTEE_SAFE, SHOWN_BY_NOTHING, 1, CLEAN, .conflicted = true}, VERDICT_BROKEN},
};

static void test_cases(void **state)
{
    for (size_t i = 0; i < COUNT(CASES); i++) {
        enum verdict verdict = verdict_of(&CASES[i].evidence);
        if (verdict != CASES[i].verdict)
            fail_msg("%s: %s, expected %s", CASES[i].what, verdict_name(verdict),
                     verdict_name(CASES[i].verdict));
    }
}

/* ---- every input with every other ---------------------------------------------------------------------- */

/* What must hold, said from the verdict's side; NULL if it does. */
static const char *violated(const struct evidence *e, enum verdict v)
{
    bool covered = e->guarantee == GUARANTEE_SAFE || e->guarantee == GUARANTEE_WHILE_LEASE_HOLDS ||
                   (e->guarantee == GUARANTEE_ONE_PROCESS && e->instances == 1);
    bool shown = (e->shown_by & SHOWN_BY_LOAD) ||
                 ((e->shown_by & SHOWN_BY_SECOND_PROCESS) && e->instances > 1);
    bool sound = e->available && !e->mixed && !e->answers_wrong && !e->sold_nothing && !e->amounts_wrong;
    bool broken = covered && (e->books_off || e->refused || e->lock_leaked ||
                              (e->guarantee == GUARANTEE_SAFE && (e->failed || e->conflicted)));
    if ((v == VERDICT_UNAVAILABLE) != !e->available)
        return "unavailable means not available";
    if ((v == VERDICT_MIXED) != (e->available && e->mixed))
        return "mixed means other writers";
    if (v == VERDICT_OK && (e->guarantee != GUARANTEE_SAFE || broken || !sound))
        return "ok is only for safe rows that kept their promise";
    if (v == VERDICT_OVERSOLD_AS_EXPECTED && (covered || !e->oversold || !sound))
        return "an oversell is only expected where no promise covers the run";
    if (v == VERDICT_FLAWED && (e->guarantee == GUARANTEE_SAFE || broken || !sound))
        return "flawed is for what kept its promise and has a flaw";
    if (v == VERDICT_NOT_CAUGHT && (covered || e->oversold || !shown || !sound))
        return "not caught is only for flaws that this run shows";
    if (v == VERDICT_BROKEN && sound && !broken)
        return "broken is only for broken promises";
    if (broken && sound && v != VERDICT_BROKEN)
        return "a broken promise is always broken";
    if (!covered && shown && !e->oversold && sound && v != VERDICT_NOT_CAUGHT)
        return "what should have shown and did not is always not caught";
    return NULL;
}

static void test_every_combination(void **state)
{
    for (int guarantee = GUARANTEE_UNSAFE; guarantee <= GUARANTEE_SAFE; guarantee++)
        for (unsigned shown_by = 0; shown_by < 16; shown_by++)
            for (int instances = 1; instances <= 3; instances++)
                for (unsigned bits = 0; bits < 2048; bits++) {
                    struct evidence e = {
                        .guarantee = (enum guarantee)guarantee,
                        .shown_by = shown_by,
                        .instances = instances,
                        .available = bits & 1,
                        .mixed = bits & 2,
                        .oversold = bits & 4,
                        .books_off = bits & 8,
                        .answers_wrong = bits & 16,
                        .sold_nothing = bits & 32,
                        .amounts_wrong = bits & 64,
                        .refused = bits & 128,
                        .lock_leaked = bits & 256,
                        .failed = bits & 512,
                        .conflicted = bits & 1024,
                    };
                    if (e.oversold && !e.books_off)
                        continue; /* oversold books are off */
                    enum verdict verdict = verdict_of(&e);
                    const char *rule = violated(&e, verdict);
                    if (rule)
                        fail_msg("guarantee %d, shown by %u, %d instances, bits %u: %s: %s", guarantee,
                                 shown_by, instances, bits, verdict_name(verdict), rule);
                }
}

/* ---- names --------------------------------------------------------------------------------------------- */

static void test_names(void **state)
{
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        enum verdict parsed;
        assert_true(verdict_parse(verdict_name((enum verdict)verdict), &parsed));
        assert_int_equal(parsed, verdict);
    }
    enum verdict verdict;
    enum guarantee guarantee;
    assert_false(verdict_parse("fine", &verdict));
    assert_false(verdict_parse(NULL, &verdict));
    assert_true(guarantee_parse("while-lease-holds", &guarantee));
    assert_int_equal(guarantee, GUARANTEE_WHILE_LEASE_HOLDS);
    assert_false(guarantee_parse("", &guarantee));
    assert_false(guarantee_parse(NULL, &guarantee));
}

static void test_shown_by(void **state)
{
    unsigned bits;
    assert_true(shown_by_parse("load", &bits));
    assert_int_equal(bits, SHOWN_BY_LOAD);
    assert_true(shown_by_parse("second-process+crash", &bits));
    assert_int_equal(bits, SHOWN_BY_SECOND_PROCESS | SHOWN_BY_CRASH);
    assert_true(shown_by_parse("expire, crash", &bits));
    assert_int_equal(bits, SHOWN_BY_EXPIRY | SHOWN_BY_CRASH);
    assert_true(shown_by_parse("nothing", &bits));
    assert_int_equal(bits, SHOWN_BY_NOTHING);
    assert_true(shown_by_parse("", &bits));
    assert_int_equal(bits, SHOWN_BY_NOTHING);
    assert_false(shown_by_parse("loads", &bits));
    assert_false(shown_by_parse("load+luck", &bits));
}

static void test_what_fails_a_run(void **state)
{
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
        assert_int_equal(
            verdict_fails((enum verdict)verdict),
            verdict == VERDICT_NOT_CAUGHT || verdict == VERDICT_NOTHING_SHOWN || verdict == VERDICT_MIXED ||
                verdict == VERDICT_BROKEN || verdict == VERDICT_NOT_EXPLORED || verdict == VERDICT_FAILING ||
                verdict == VERDICT_TURNED_AWAY || verdict == VERDICT_ANOMALY ||
                verdict == VERDICT_ANSWERS_LOST || verdict == VERDICT_INVARIANT || verdict == VERDICT_DRIFT ||
                verdict == VERDICT_STUCK || verdict == VERDICT_OVERSOLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_every_combination),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_shown_by),
        cmocka_unit_test(test_what_fails_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
