/* The verdict on a strategy: what its row promises, compared with what the schedules came to. Pure. */
#include "loadtest/explore/spec/explore_verdict.h"

#include "loadtest/explore/exec/invariants.h"
#include "loadtest/explore/spec/figures.h"

#include <inttypes.h>
#include <stdio.h>

/* A deadlock is wrong if the strategy does not retry: the victim's client is refused without a reason. */
static bool deadlock_is_wrong(const struct execution_settings *settings)
{
    return settings->strategy->guarantee != GUARANTEE_UNSAFE && settings->strategy->max_tries <= 1;
}

bool execution_breaks_promise(const struct execution *execution)
{
    unsigned never = execution->settings.never;
    if (never)
        return figures_any(never, &execution->ending);
    return ending_is_bad(&execution->ending) ||
           (execution->ending.deadlock && deadlock_is_wrong(&execution->settings));
}

/* Do the orders want more units than there are? Some flaws show only then. */
static bool is_scarce(const struct execution_settings *settings)
{
    int64_t wanted = 0;
    for (size_t i = 0; i < settings->actors; i++)
        wanted += settings->quantities[i];
    return wanted > settings->stock;
}

/* Was the lock itself at fault in any schedule? No lease that ended excuses these. */
static bool lock_is_broken(const struct totals *totals)
{
    return totals->lock_stolen + totals->two_holders + totals->unbacked_grant > 0;
}

enum verdict explore_verdict(const struct execution_settings *settings, const struct totals *totals,
                             bool complete)
{
    if (settings->never)
        return totals->bad > 0 ? VERDICT_BROKEN : complete ? VERDICT_OK : VERDICT_UNKNOWN;
    bool flaw_may_show = settings->strategy->shown_by & (SHOWN_BY_LOAD | settings->faults);
    bool unsafe = settings->strategy->guarantee == GUARANTEE_UNSAFE;
    /* An unsafe strategy may have more flaws than the one that its row is about; in some sequence its lock may also be
     * stuck without a fault. */
    bool may_be_bad = flaw_may_show || (unsafe && (settings->faults || totals->bad == totals->stuck));
    if (!unsafe && (lock_is_broken(totals) || totals->stuck))
        return VERDICT_BROKEN;
    /* False refusals and leaked locks are no declared flaw of any row. */
    if (totals->false_refusals + totals->leaked > 0 || (totals->deadlocks > 0 && deadlock_is_wrong(settings)))
        return VERDICT_BROKEN;
    if (totals->bad > 0)
        return may_be_bad ? VERDICT_OVERSOLD_AS_EXPECTED : VERDICT_BROKEN;
    if (!complete || (flaw_may_show && !is_scarce(settings)))
        return VERDICT_UNKNOWN;
    return flaw_may_show ? VERDICT_NOT_CAUGHT : VERDICT_OK;
}

enum verdict explore_verdict_of_both(enum verdict one, enum verdict other)
{
    static const enum verdict STRONGEST_FIRST[] = {
        VERDICT_BROKEN,     VERDICT_OVERSOLD_AS_EXPECTED,
        VERDICT_NOT_CAUGHT, VERDICT_UNAVAILABLE,
        VERDICT_UNKNOWN,    VERDICT_OK,
    };
    size_t i = 0;
    while (STRONGEST_FIRST[i] != one && STRONGEST_FIRST[i] != other)
        i++;
    return STRONGEST_FIRST[i];
}

const char *explore_verdict_why(const struct execution_settings *settings, const struct totals *totals,
                                char *ret_text, size_t size)
{
    const struct {
        uint64_t schedules;
        const char *what;
    } found[] = {
        {totals->oversold, "more units were sold than the stock had"},
        {totals->oversold ? 0 : totals->drifted, "the stock is not correct"},
        {totals->false_refusals, "an order was refused as sold out although enough units were left"},
        {totals->leaked, "an order ended without releasing its lock"},
        {totals->stuck, "an order waits for a lock that nobody will release"},
        {deadlock_is_wrong(settings) ? totals->deadlocks : 0, "orders deadlocked"},
        {totals->failed, "an order failed, and no other order explains it"},
        {totals->answers_wrong, "the orders in the database are not those that were acknowledged"},
        {totals->lock_stolen, "lock stolen: an order released another order's lock"},
        {totals->two_holders + totals->unbacked_grant, "two holders of one lock"},
    };
    size_t used = 0;
    *ret_text = '\0';
    for (size_t i = 0; i < sizeof found / sizeof found[0] && used < size; i++)
        if (found[i].schedules > 0)
            used += (size_t)snprintf(ret_text + used, size - used,
                                     "%s%s (%" PRIu64 " of %" PRIu64 " schedules)", used ? "; " : "",
                                     found[i].what, found[i].schedules, totals->schedules);
    return ret_text;
}
