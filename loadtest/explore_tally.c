/* Adding up schedules, and what the sums say about a strategy's promise. Pure. */
#include "loadtest/explore_tally.h"

#include "loadtest/explore_scenario.h"

#include <string.h>

static bool is_plainer(const struct witness *one, const struct witness *other)
{
    if (one->is_bad != other->is_bad)
        return one->is_bad;
    return one->switches < other->switches ||
           (one->switches == other->switches && one->length < other->length);
}

/* Into its place among the plainest, of equal ones behind those that came before. */
static void keep_witness(struct tally *tally, const struct play *play, bool bad, unsigned switches)
{
    struct witness new = {.length = play->move_count, .switches = switches, .is_bad = bad};
    size_t most = tally->witness_most ? tally->witness_most : 1, at = tally->witness_count;
    while (at > 0 && is_plainer(&new, &tally->witnesses[at - 1]))
        at--;
    if (at == most)
        return;
    memcpy(new.moves, play->moves, play->move_count * sizeof play->moves[0]);
    tally->witness_count += tally->witness_count < most;
    memmove(tally->witnesses + at + 1, tally->witnesses + at,
            (tally->witness_count - at - 1) * sizeof tally->witnesses[0]);
    tally->witnesses[at] = new;
}

bool tally_is_bad(const struct play *play)
{
    unsigned never = play->settings.never;
    return never ? figures_any(never, &play->ending) : ending_is_bad(&play->ending);
}

void tally_add(struct tally *tally, const struct play *play)
{
    const struct ending *ending = &play->ending;
    unsigned switches = moves_switches(play->moves, play->move_count);
    bool bad = tally_is_bad(play);
    tally->schedules++;
    tally->moves += play->move_count;
    tally->oversold += ending->oversold > 0;
    tally->drifted += ending->drift != 0;
    tally->undersold += ending->undersold;
    tally->rightly += !bad && !ending->undersold;
    tally->waited += ending->waited;
    tally->deadlocks += ending->deadlock;
    tally->stuck += ending->stuck;
    tally->answers_wrong += ending->answers_wrong;
    tally->failed += ending->failed;
    tally->robbed += ending->robbed;
    tally->two_holders += ending->two_holders;
    tally->hollow += ending->hollow;
    tally->bad += bad;
    tally->by_switches[switches < SWITCHES_MAX ? switches : SWITCHES_MAX]++;
    if (bad || ending_breaks_lock(ending))
        keep_witness(tally, play, bad, switches);
}

unsigned tally_switches(const struct tally *tally, double quantile)
{
    uint64_t rank = (uint64_t)(quantile * (double)(tally->schedules ? tally->schedules - 1 : 0)), seen = 0;
    unsigned switches = 0;
    while (switches < SWITCHES_MAX && (seen += tally->by_switches[switches]) <= rank)
        switches++;
    return switches;
}

/* Is more wanted than there is? Some flaws show only then. */
static bool is_scarce(const struct play_settings *settings)
{
    int64_t wanted = 0;
    for (size_t i = 0; i < settings->actors; i++)
        wanted += settings->quantities[i];
    return wanted > settings->stock;
}

/* The lock itself is at fault, whatever comes of it: with no lease that ended is that to be excused. */
static bool lock_is_broken(const struct tally *tally)
{
    return tally->robbed + tally->two_holders + tally->hollow > 0;
}

enum explore_verdict explore_verdict(const struct play_settings *settings, const struct tally *tally,
                                     bool complete)
{
    if (settings->never)
        return tally->bad > 0 ? EXPLORE_BROKEN : complete ? EXPLORE_OK : EXPLORE_UNKNOWN;
    bool flaw_may_show = settings->strategy->shown_by & (LOAD | settings->faults);
    bool unsafe = settings->strategy->guarantee == UNSAFE;
    /* Who promises nothing may have more flaws than the one that the row is about, and in some order of steps a lock
     * may be stuck by itself. */
    bool may_be_bad = flaw_may_show || (unsafe && (settings->faults || tally->bad == tally->stuck));
    if (!unsafe && (lock_is_broken(tally) || tally->stuck))
        return EXPLORE_BROKEN;
    if (tally->bad > 0)
        return may_be_bad ? EXPLORE_OVERSOLD_AS_EXPECTED : EXPLORE_BROKEN;
    if (!complete || (flaw_may_show && !is_scarce(settings)))
        return EXPLORE_UNKNOWN;
    return flaw_may_show ? EXPLORE_NOT_CAUGHT : EXPLORE_OK;
}

const char *explore_verdict_name(enum explore_verdict verdict)
{
    static const char *const names[] = {
        [EXPLORE_OK] = "ok",
        [EXPLORE_OVERSOLD_AS_EXPECTED] = "oversold-as-expected",
        [EXPLORE_UNKNOWN] = "unknown",
        [EXPLORE_UNAVAILABLE] = "unavailable",
        [EXPLORE_NOT_CAUGHT] = "not-caught",
        [EXPLORE_BROKEN] = "broken",
    };
    return names[verdict];
}
