/* Explains a lost update by the serialization graph of two orders. If A read before B's write was committed, A must come before
 * B in an equivalent serial execution (a read-write conflict). If B also read before A's write, the graph has a cycle: no
 * serial execution gives this result. See Adya, Liskov, O'Neil: "Generalized isolation level definitions", ICDE 2000. */
#include "loadtest/explore/explain/explanation.h"

#include "loadtest/search/schedule_notation.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NEVER NO_EVENT

struct text {
    char *to;
    size_t used, size;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
    va_list arguments;
    if (text->used + 1 >= text->size)
        return;
    if (text->used > 0)
        text->to[text->used++] = ' ';
    va_start(arguments, format);
    int length = vsnprintf(text->to + text->used, text->size - text->used, format, arguments);
    va_end(arguments);
    text->used += length > 0 ? (size_t)length : 0;
    if (text->used >= text->size)
        text->used = text->size - 1;
}

static size_t when(const struct execution *execution, unsigned actor, uint8_t what)
{
    return trace_last(&execution->trace, 0, actor, what);
}

/* The event by which others could see that ACTOR had taken units, or NEVER. */
static size_t when_committed(const struct execution *execution, unsigned actor)
{
    size_t one = when(execution, actor, STEP_COMMIT);
    return one != NEVER ? one : when(execution, actor, STEP_COMMIT_STOCK);
}

/* Did A read before B's write was committed? */
static bool did_not_see(const struct execution *execution, unsigned a, unsigned b)
{
    size_t read = when(execution, a, STEP_READ), committed = when_committed(execution, b);
    return read != NEVER && committed != NEVER && read < committed;
}

static bool sold(const struct execution *execution, unsigned actor)
{
    return execution->ending.outcomes[actor] == ORDER_CREATED;
}

/* ---- the lock ------------------------------------------------------------------------------------------------- */

static void explain_lock(const struct execution *execution, unsigned a, unsigned b, struct text *text)
{
    size_t a_lock = when(execution, a, STEP_LOCK), b_lock = when(execution, b, STEP_LOCK);
    if (a_lock == NEVER || b_lock == NEVER)
        return;
    unsigned first = a_lock < b_lock ? a : b, second = a_lock < b_lock ? b : a;
    size_t unlocked = when(execution, first, STEP_UNLOCK), second_lock = when(execution, second, STEP_LOCK);
    if (when(execution, first, EVENT_EXPIRED) < second_lock)
        say(text, "%c's lock ended while %c still worked, and %c acquired it.", actor_name(first),
            actor_name(first), actor_name(second));
    else if (when(execution, first, EVENT_RESTARTED) < second_lock)
        say(text, "A server restarted and lost %c's lock, and %c acquired it.", actor_name(first),
            actor_name(second));
    else if (when(execution, first, EVENT_LOCK_STOLEN) < second_lock)
        say(text, "Another order released %c's lock, and %c acquired it.", actor_name(first),
            actor_name(second));
    else if (unlocked == NEVER || unlocked > second_lock)
        say(text, "%c acquired the lock while %c held it, or believed that it did.", actor_name(second),
            actor_name(first));
    else if (unlocked < when_committed(execution, first))
        say(text, "%c released the lock before its COMMIT.", actor_name(first));
}

/* ---- the conflict  -------------------------------------------------------------------------------------------- */

/* If both sold and neither saw the other's write: says so. */
static bool explain_pair(const struct execution *execution, unsigned a, unsigned b, struct text *text)
{
    if (!sold(execution, a) || !sold(execution, b) || !did_not_see(execution, a, b) ||
        !did_not_see(execution, b, a))
        return false;
    int64_t a_read = execution->trace.events[when(execution, a, STEP_READ)].value;
    int64_t b_read = execution->trace.events[when(execution, b, STEP_READ)].value;
    char a_name = actor_name(a), b_name = actor_name(b);
    if (a_read == b_read)
        say(text, "%c and %c both read %" PRId64 ".", a_name, b_name, a_read);
    else
        say(text, "%c read %" PRId64 ", and %c read %" PRId64 ".", a_name, a_read, b_name, b_read);
    explain_lock(execution, a, b, text);
    say(text, "Neither saw the other's write, so no serial execution gives this result.");
    return true;
}

static void explain_contradiction(const struct execution *execution, struct text *text)
{
    for (unsigned a = 0; a < execution->settings.actors; a++)
        for (unsigned b = a + 1; b < execution->settings.actors; b++)
            if (explain_pair(execution, a, b, text))
                return;
}

/* ---- the result ---------------------------------------------------------------------------------------------- */

static void explain_stolen_lock(const struct execution *execution, struct text *text)
{
    for (unsigned i = 0; i < execution->settings.actors; i++)
        if (when(execution, i, EVENT_LOCK_STOLEN) != NEVER)
            say(text, "Another order released %c's lock.", actor_name(i));
}

static void explain_crash(const struct execution *execution, struct text *text)
{
    for (unsigned i = 0; i < execution->settings.actors; i++)
        if (when(execution, i, EVENT_CRASHED) != NEVER)
            say(text,
                when_committed(execution, i) != NEVER ? "%c died after its COMMIT."
                                                      : "%c died before its COMMIT.",
                actor_name(i));
}

static void explain_stuck(const struct execution *execution, struct text *text)
{
    for (unsigned i = 0; i < execution->settings.actors; i++) {
        size_t waits = when(execution, i, EVENT_WAITS);
        if (waits != NEVER && when(execution, i, EVENT_ENDED) == NEVER &&
            when(execution, i, EVENT_CRASHED) == NEVER)
            say(text, "%c waits for a lock that nobody will release.", actor_name(i));
    }
}

/* The lock itself failed, and no lease that ended excuses it. */
static void explain_holders(const struct execution *execution, struct text *text)
{
    if (execution->ending.two_holders)
        say(text, "Two orders held the lock at the same time, although no lease had ended.");
    if (execution->ending.unbacked_grant)
        say(text, "An order believed that it held the lock, but the lock's server did not have it.");
}

/* False refusals, deadlocks, leaked locks and failures. */
static void explain_endings(const struct ending *ending, struct text *text)
{
    if (ending->false_refusal)
        say(text, "An order was refused as sold out although enough units were left.");
    if (ending->deadlock)
        say(text, "Deadlock: the orders waited for each other, and PostgreSQL rolled one of them back.");
    if (ending->leaked)
        say(text, "An order ended without releasing its lock.");
    if (ending->failed)
        say(text, "An order failed, and no other order explains it.");
}

void explain_execution(const struct execution *execution, char *ret_text, size_t size)
{
    struct text text = {ret_text, 0, size};
    const struct ending *ending = &execution->ending;
    int64_t stock = execution->settings.stock;
    *ret_text = '\0';
    explain_crash(execution, &text);
    if (ending->lock_stolen)
        explain_stolen_lock(execution, &text);
    explain_holders(execution, &text);
    if (ending->oversold > 0 || ending->drift > 0)
        explain_contradiction(execution, &text);
    if (ending->drift != 0)
        say(&text, "Sold %" PRId64 " of %" PRId64 ", and the stock shows %" PRId64 " left: %" PRId64 " %s.",
            ending->audit.sold, stock, ending->audit.left, ending->drift > 0 ? ending->drift : -ending->drift,
            ending->drift > 0 ? "sold but not subtracted" : "subtracted but in no order");
    else if (ending->audit.left < 0)
        say(&text, "Sold %" PRId64 " of %" PRId64 ", and the stock shows %" PRId64 ".", ending->audit.sold,
            stock, ending->audit.left);
    else
        say(&text, "Sold %" PRId64 " of %" PRId64 ".", ending->audit.sold, stock);
    if (ending->stuck)
        explain_stuck(execution, &text);
    explain_endings(ending, &text);
    if (ending->answers_wrong)
        say(&text, "The orders in the database are not those that were acknowledged.");
}
