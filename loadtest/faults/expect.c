/* Compares what is expected of a strategy under a fault with what was seen. Pure functions. */
#include "loadtest/faults/fault.h"

#include <stdio.h>
#include <string.h>

unsigned fault_perils(const struct strategy *strategy)
{
    return strategy->lock ? strategy->lock->properties.perils : 0;
}

bool fault_lock_on(const struct strategy *strategy, const char *server)
{
    const struct lock_server *on = strategy_server(strategy);
    return on && strcmp(on->name, server) == 0;
}

/* An order that is one statement has no moment after its read at which the cycle could stop it. */
static bool can_be_overtaken(const struct strategy *strategy)
{
    return !strategy->place || strategy->take_stock->take || !strategy_has_steps(strategy);
}

unsigned fault_expected(const struct fault *fault, const struct strategy *strategy)
{
    bool concerned = !fault->only[0];
    if (fault->cycle == CYCLE_OVERTAKE && !can_be_overtaken(strategy))
        return 0;
    for (size_t i = 0; i < sizeof fault->only / sizeof fault->only[0] && fault->only[i]; i++)
        concerned |= fault_lock_on(strategy, fault->only[i]);
    return concerned ? fault->expect(fault, strategy) : 0;
}

bool fault_sees_its_place(const struct strategy *strategy)
{
    /* A policy that checks first, and lets the database subtract later, may subtract from another stock. */
    return strategy->take_stock->kind == STOCK_COUNTER && !strategy->take_stock->seen_is_stale;
}

bool fault_lock_excludes(const struct strategy *strategy)
{
    return strategy->lock && (strategy->guarantee == GUARANTEE_WHILE_LEASE_HOLDS ||
                              strategy->guarantee == GUARANTEE_ONE_PROCESS);
}

/* The invariants that were broken and the flaws that showed, whether expected or not. */
static unsigned seen_against(const struct fault *fault, const struct fault_subject *subject)
{
    const struct fault_counts *counts = &subject->counts;
    unsigned seen = 0;
    if (counts->oversold > 0 || counts->drift > 0 ||
        (fault_sees_its_place(subject->strategy) && counts->disordered > 0))
        seen |= I1_NOT_OVERSOLD | SEEN_OVERSOLD;
    if (counts->turned_away > 0 || (fault_lock_excludes(subject->strategy) && counts->overlaps > 0))
        seen |= I1_NOT_OVERSOLD;
    if (counts->drift != 0)
        seen |= I3_BALANCED | SEEN_OVERSOLD;
    if (counts->gone > 0)
        seen |= I3_BALANCED | I8_NO_UNIT_GONE;
    if (counts->lost > 0)
        seen |= I2_NOT_LOST | SEEN_LOST;
    if (counts->amounts_wrong > 0)
        seen |= I2_NOT_LOST;
    if (counts->duplicated > 0 || counts->denied > 0)
        seen |= I7_ONCE;
    if (counts->wrong > 0)
        seen |= I6_ANSWERED;
    if (subject->longest_recovery_ms > FAULT_LATE * fault->bound_ms)
        seen |= I4_LOCK_FREED | I5_FLOWS;
    if (subject->stuck)
        seen |= I4_LOCK_FREED | I5_FLOWS | SEEN_STUCK;
    return seen;
}

bool fault_still_to_be_seen(const struct fault_run *run, unsigned wanted)
{
    for (size_t i = 0; i < run->count; i++) {
        unsigned expected = run->subjects[i].expected & wanted;
        if (expected && !(seen_against(run->fault, &run->subjects[i]) & expected))
            return true;
    }
    return false;
}

bool fault_awaits_outage(const struct fault_subject *subject)
{
    /* A lock that ends with its holder's connection causes no outage. */
    bool leased = (subject->expected & I4_LOCK_FREED) && (fault_perils(subject->strategy) & PERIL_PAUSE);
    return (leased || (subject->expected & SEEN_STUCK)) && subject->outages == 0;
}

enum verdict fault_verdict(const struct fault *fault, const struct fault_subject *subject)
{
    if (subject->reason || subject->cycles == 0)
        return VERDICT_UNAVAILABLE;
    unsigned seen = seen_against(fault, subject);
    if (seen & subject->expected & ~(unsigned)SEEN_ANY)
        return VERDICT_BROKEN;
    if (fault_awaits_outage(subject))
        return VERDICT_NOT_CAUGHT;
    if (!(subject->expected & SEEN_ANY)) {
        bool sold = subject->counts.acknowledged > 0 && 2 * subject->empty <= subject->cycles;
        return sold && subject->counts.critical > 0 ? VERDICT_OK : VERDICT_NOTHING_SHOWN;
    }
    return seen & subject->expected & SEEN_ANY ? VERDICT_CAUGHT : VERDICT_NOT_CAUGHT;
}

const char *fault_promises(unsigned expected, char *buffer)
{
    size_t used = 0;
    buffer[0] = 0;
    for (int i = 1; i <= INVARIANTS; i++)
        if (expected & 1u << i)
            used += (size_t)snprintf(buffer + used, 64 - used, "%sI%d", used ? " " : "", i);
    return buffer;
}
