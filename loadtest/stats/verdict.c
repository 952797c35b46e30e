/* Compares what a run found with what the strategy promises: the verdicts, their names, and the rule that compare and rush
 * decide by. */
#include "loadtest/stats/verdict.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    enum shown_by bit;
} SHOWN_BY[] = {
    {"load", SHOWN_BY_LOAD},       {"second-process", SHOWN_BY_SECOND_PROCESS},
    {"expire", SHOWN_BY_EXPIRY},   {"crash", SHOWN_BY_CRASH},
    {"nothing", SHOWN_BY_NOTHING},
};
static const char *const VERDICTS[VERDICT_COUNT] = {
    [VERDICT_OK] = "ok",
    [VERDICT_OVERSOLD_AS_EXPECTED] = "oversold-as-expected",
    [VERDICT_CAUGHT] = "caught-as-expected",
    [VERDICT_FLAWED] = "flawed",
    [VERDICT_UNKNOWN] = "unknown",
    [VERDICT_UNAVAILABLE] = "unavailable",
    [VERDICT_NOT_CAUGHT] = "not-caught",
    [VERDICT_NOTHING_SHOWN] = "nothing-shown",
    [VERDICT_MIXED] = "mixed",
    [VERDICT_BROKEN] = "broken",
    [VERDICT_CLEAN] = "clean",
    [VERDICT_ANOMALY] = "anomaly",
    [VERDICT_NOT_EXPLORED] = "not-explored",
    [VERDICT_FAILING] = "failing",
    [VERDICT_TURNED_AWAY] = "turned-away",
    [VERDICT_ANSWERS_LOST] = "answers-lost",
    [VERDICT_INVARIANT] = "invariant-broken",
    [VERDICT_DRIFT] = "drift",
    [VERDICT_STUCK] = "stuck",
    [VERDICT_OVERSOLD] = "oversold",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool verdict_flaw_is_shown(unsigned shown_by, int instances)
{
    return (shown_by & SHOWN_BY_LOAD) || ((shown_by & SHOWN_BY_SECOND_PROCESS) && instances > 1);
}

bool verdict_promise_covers(enum guarantee guarantee, int instances)
{
    return guarantee == GUARANTEE_SAFE || guarantee == GUARANTEE_WHILE_LEASE_HOLDS ||
           (guarantee == GUARANTEE_ONE_PROCESS && instances == 1);
}

enum verdict verdict_of(const struct evidence *evidence)
{
    if (!evidence->available)
        return VERDICT_UNAVAILABLE;
    if (evidence->mixed)
        return VERDICT_MIXED;
    /* Wrong answers and wrong amounts are no declared flaw of any row; a run without a sale shows nothing. */
    if (evidence->answers_wrong || evidence->sold_nothing || evidence->amounts_wrong)
        return VERDICT_BROKEN;
    if (verdict_promise_covers(evidence->guarantee, evidence->instances)) {
        if (evidence->books_off || evidence->refused || evidence->lock_leaked)
            return VERDICT_BROKEN;
        if (evidence->guarantee == GUARANTEE_SAFE && (evidence->failed || evidence->conflicted))
            return VERDICT_BROKEN;
        return evidence->guarantee == GUARANTEE_SAFE ? VERDICT_OK : VERDICT_FLAWED;
    }
    if (evidence->oversold)
        return VERDICT_OVERSOLD_AS_EXPECTED;
    return verdict_flaw_is_shown(evidence->shown_by, evidence->instances) ? VERDICT_NOT_CAUGHT
                                                                          : VERDICT_FLAWED;
}

bool verdict_fails(enum verdict verdict)
{
    return verdict >= VERDICT_NOT_CAUGHT;
}

const char *verdict_name(enum verdict verdict)
{
    return VERDICTS[verdict];
}

bool verdict_parse(const char *name, enum verdict *ret_verdict)
{
    for (enum verdict verdict = VERDICT_OK; name && verdict < VERDICT_COUNT; verdict++)
        if (strcmp(VERDICTS[verdict], name) == 0) {
            *ret_verdict = verdict;
            return true;
        }
    return false;
}

bool guarantee_parse(const char *name, enum guarantee *ret_guarantee)
{
    for (enum guarantee guarantee = GUARANTEE_UNSAFE; name && guarantee <= GUARANTEE_SAFE; guarantee++)
        if (strcmp(guarantee_name(guarantee), name) == 0) {
            *ret_guarantee = guarantee;
            return true;
        }
    return false;
}

bool shown_by_parse(const char *names, unsigned *ret_shown_by)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz-";
    unsigned bits = 0;
    for (const char *name = names + strcspn(names, LETTERS); *name; name += strcspn(name, LETTERS)) {
        size_t length = strspn(name, LETTERS), i = 0;
        while (i < COUNT(SHOWN_BY) &&
               (strlen(SHOWN_BY[i].name) != length || strncmp(SHOWN_BY[i].name, name, length) != 0))
            i++;
        if (i == COUNT(SHOWN_BY))
            return false;
        bits |= SHOWN_BY[i].bit;
        name += length;
    }
    *ret_shown_by = bits;
    return true;
}
