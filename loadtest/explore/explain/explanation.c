/* Why a schedule went wrong: two orders neither of which saw what the other wrote cannot have run one after the other. */
#include "loadtest/explore/explain/explanation.h"

#include "loadtest/explore/core/schedule_notation.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NEVER SIZE_MAX

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

/* When ACTOR last reported WHAT, as the number of the event; NEVER if it did not. */
static size_t when(const struct play *play, unsigned actor, uint8_t what)
{
    for (size_t i = play->scene.event_count; i > 0; i--)
        if (play->scene.events[i - 1].actor == actor && play->scene.events[i - 1].what == what)
            return i - 1;
    return NEVER;
}

/* When others could see what ACTOR took. */
static size_t when_committed(const struct play *play, unsigned actor)
{
    size_t one = when(play, actor, STEP_COMMIT);
    return one != NEVER ? one : when(play, actor, STEP_COMMIT_STOCK);
}

/* Did A read before it could see what B wrote? */
static bool did_not_see(const struct play *play, unsigned a, unsigned b)
{
    size_t read = when(play, a, STEP_READ), committed = when_committed(play, b);
    return read != NEVER && committed != NEVER && read < committed;
}

static bool sold(const struct play *play, unsigned actor)
{
    return play->ending.outcomes[actor] == CREATED;
}

/* ---- the lock ------------------------------------------------------------------------------------------------- */

static void explain_lock(const struct play *play, unsigned a, unsigned b, struct text *text)
{
    size_t a_lock = when(play, a, STEP_LOCK), b_lock = when(play, b, STEP_LOCK);
    if (a_lock == NEVER || b_lock == NEVER)
        return;
    unsigned first = a_lock < b_lock ? a : b, second = a_lock < b_lock ? b : a;
    size_t unlocked = when(play, first, STEP_UNLOCK), second_lock = when(play, second, STEP_LOCK);
    if (when(play, first, EVENT_EXPIRED) < second_lock)
        say(text, "%c's lock ended while it worked, and %c got it.", actor_name(first), actor_name(second));
    else if (when(play, first, EVENT_RESTARTED) < second_lock)
        say(text, "A server that restarted had forgotten %c's lock, and %c got it.", actor_name(first),
            actor_name(second));
    else if (when(play, first, EVENT_ROBBED) < second_lock)
        say(text, "%c's lock was released by another, and %c got it.", actor_name(first), actor_name(second));
    else if (unlocked == NEVER || unlocked > second_lock)
        say(text, "%c got the lock while %c had it, or believed so.", actor_name(second), actor_name(first));
    else if (unlocked < when_committed(play, first))
        say(text, "%c let the lock go before its COMMIT.", actor_name(first));
}

/* ---- what was seen -------------------------------------------------------------------------------------------- */

/* Both sold, and neither saw the other's write. */
static bool explain_pair(const struct play *play, unsigned a, unsigned b, struct text *text)
{
    if (!sold(play, a) || !sold(play, b) || !did_not_see(play, a, b) || !did_not_see(play, b, a))
        return false;
    int64_t a_read = play->scene.events[when(play, a, STEP_READ)].value;
    int64_t b_read = play->scene.events[when(play, b, STEP_READ)].value;
    char a_name = actor_name(a), b_name = actor_name(b);
    if (a_read == b_read)
        say(text, "%c and %c both read %" PRId64 ".", a_name, b_name, a_read);
    else
        say(text, "%c read %" PRId64 ", and %c read %" PRId64 ".", a_name, a_read, b_name, b_read);
    explain_lock(play, a, b, text);
    say(text,
        "%c did not see what %c wrote, so %c comes before %c; %c did not see what %c wrote, so %c comes before %c: "
        "no order of the two explains it.",
        b_name, a_name, b_name, a_name, a_name, b_name, a_name, b_name);
    return true;
}

static void explain_contradiction(const struct play *play, struct text *text)
{
    for (unsigned a = 0; a < play->settings.actors; a++)
        for (unsigned b = a + 1; b < play->settings.actors; b++)
            if (explain_pair(play, a, b, text))
                return;
}

/* ---- what it came to ------------------------------------------------------------------------------------------ */

static void explain_robbed(const struct play *play, struct text *text)
{
    for (unsigned i = 0; i < play->settings.actors; i++)
        if (when(play, i, EVENT_ROBBED) != NEVER)
            say(text, "A release of another order's took %c's lock away.", actor_name(i));
}

static void explain_crash(const struct play *play, struct text *text)
{
    for (unsigned i = 0; i < play->settings.actors; i++)
        if (when(play, i, EVENT_CRASHED) != NEVER)
            say(text,
                when_committed(play, i) != NEVER ? "%c died after its COMMIT." : "%c died before its COMMIT.",
                actor_name(i));
}

static void explain_stuck(const struct play *play, struct text *text)
{
    for (unsigned i = 0; i < play->settings.actors; i++) {
        size_t waits = when(play, i, EVENT_WAITS);
        if (waits != NEVER && when(play, i, EVENT_ENDED) == NEVER && when(play, i, EVENT_CRASHED) == NEVER)
            say(text, "%c waits for a lock that nobody will release.", actor_name(i));
    }
}

/* Who is at fault where the lock is, and nothing had ended that would excuse it. */
static void explain_holders(const struct play *play, struct text *text)
{
    if (play->ending.two_holders)
        say(text, "Two held the lock at once, and nobody's had ended.");
    if (play->ending.hollow)
        say(text, "One believed that it had got the lock, and the server knew nothing of it.");
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

void explain(const struct play *play, char *ret_text, size_t size)
{
    struct text text = {ret_text, 0, size};
    const struct ending *ending = &play->ending;
    int64_t stock = play->settings.stock;
    *ret_text = '\0';
    explain_crash(play, &text);
    if (ending->robbed)
        explain_robbed(play, &text);
    explain_holders(play, &text);
    if (ending->oversold > 0 || ending->drift > 0)
        explain_contradiction(play, &text);
    if (ending->drift != 0)
        say(&text, "Sold %" PRId64 " of %" PRId64 ", and the stock shows %" PRId64 " left: %" PRId64 " %s.",
            ending->books.sold, stock, ending->books.left, ending->drift > 0 ? ending->drift : -ending->drift,
            ending->drift > 0 ? "sold without being taken off it" : "taken off it and in no order");
    else if (ending->books.left < 0)
        say(&text, "Sold %" PRId64 " of %" PRId64 ", and the stock shows %" PRId64 ".", ending->books.sold,
            stock, ending->books.left);
    else
        say(&text, "Sold %" PRId64 " of %" PRId64 ".", ending->books.sold, stock);
    if (ending->stuck)
        explain_stuck(play, &text);
    explain_endings(ending, &text);
    if (ending->answers_wrong)
        say(&text, "The orders in the database are not those that were acknowledged.");
}
