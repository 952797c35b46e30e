/* Turns the events of an execution into the lines of a table. */
#include "loadtest/explore/explain/narration.h"

#include "loadtest/cli/terminal.h"
#include "loadtest/explore/explain/explanation.h"
#include "loadtest/json/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What the explorer makes happen. */
#define PLACE_ENDS "its place ends"
#define LOCK_ENDS "its lock ends"
#define RESTARTS "a server restarts, empty"
#define CANNOT_REACH "cannot reach a server"
#define DIES "dies"

/* ---- one event ------------------------------------------------------------------------------------------------ */

static void waits_text(const struct event *event, char *ret_text, size_t size)
{
    if (event->value == WAITS_FOR_EVER) {
        snprintf(ret_text, size, "waits, and nobody will wake it");
        return;
    }
    size_t used = (size_t)snprintf(ret_text, size, event->value ? "waits for" : "waits: the lock is taken");
    for (unsigned i = 0; i < ACTORS_MAX && used < size; i++)
        if (event->value & (int64_t)1 << i)
            used += (size_t)snprintf(ret_text + used, size - used, " %c", actor_name(i));
}

/* A strategy outside the table may report this step without the stock. */
static void stock_text(const struct event *event, char *ret_text, size_t size)
{
    if (event->value == STEP_NO_VALUE)
        snprintf(ret_text, size, "%s", stop_name(event->what));
    else
        snprintf(ret_text, size, event->what == STEP_TAKE ? "%s, leaving %" PRId64 : "%s %" PRId64,
                 stop_name(event->what), event->value);
}

bool narration_is_fault(const char *text)
{
    static const char *const FAULTS[] = {PLACE_ENDS, LOCK_ENDS, RESTARTS, CANNOT_REACH, DIES};
    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++)
        if (strcmp(text, FAULTS[i]) == 0)
            return true;
    return false;
}

static void refusal_text(const struct event *event, char *ret_text, size_t size)
{
    if (event->value == STEP_NO_VALUE)
        snprintf(ret_text, size, "refused: row has a newer token");
    else
        snprintf(ret_text, size, "refused: row has token %" PRId64, event->value);
}

/* "" for an event that the table leaves out. */
static void event_text(const struct event *event, char *ret_text, size_t size)
{
    *ret_text = '\0';
    switch (event->what) {
    case STEP_INSERT: break;
    case STEP_READ:
    case STEP_WRITE:
    case STEP_TAKE: stock_text(event, ret_text, size); break;
    case STEP_UNLOCK:
        snprintf(ret_text, size,
                 event->value == 1   ? "unlock"
                 : event->value == 0 ? "unlock: not held"
                                     : "unlock: no answer");
        break;
    case STEP_CHECK: snprintf(ret_text, size, event->value ? "check" : "check: the lock has expired"); break;
    case STEP_GET: snprintf(ret_text, size, event->value ? "get" : "get: not its key"); break;
    case STEP_DEL: snprintf(ret_text, size, event->value ? "del" : "del: no key"); break;
    case STEP_REFUSE: refusal_text(event, ret_text, size); break;
    case EVENT_WAITS: waits_text(event, ret_text, size); break;
    case STEP_WAIT: snprintf(ret_text, size, "joins the queue"); break;
    case EVENT_RETRY: snprintf(ret_text, size, "conflict: begins again"); break;
    case EVENT_EXPIRED: snprintf(ret_text, size, event->value == 1 ? PLACE_ENDS : LOCK_ENDS); break;
    case EVENT_RESTARTED: snprintf(ret_text, size, RESTARTS); break;
    case EVENT_TIMED_OUT: snprintf(ret_text, size, "has waited too long"); break;
    case EVENT_CUT: snprintf(ret_text, size, CANNOT_REACH); break;
    case EVENT_LOCK_STOLEN: snprintf(ret_text, size, "loses its lock to another's release"); break;
    case EVENT_CRASHED: snprintf(ret_text, size, DIES); break;
    case EVENT_ENDED:
        if (event->value != ORDER_CREATED)
            snprintf(ret_text, size, "%s", outcome_name((enum outcome)event->value));
        break;
    default: snprintf(ret_text, size, "%s", stop_name(event->what)); break;
    }
}

void events_text(const struct event *events, size_t count, char *ret_text, size_t size)
{
    size_t used = 0;
    *ret_text = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        char text[120];
        event_text(&events[i], text, sizeof text);
        if (*text)
            used += (size_t)snprintf(ret_text + used, size - used, "%s%c %s", used ? ", " : "",
                                     actor_name(events[i].actor), text);
    }
}

/* ---- lines ---------------------------------------------------------------------------------------------------- */

/* What follows depends on what was read, so a read ends its line. */
static bool ends_line(const struct event *event)
{
    return event->what == STEP_READ || event->what == EVENT_RETRY || event->what == EVENT_WAITS ||
           event->what == STEP_WAIT;
}

/* The line that an event of ACTOR's belongs to: the last one, or a new one if that has ended or is another actor's. */
static struct narration_line *line_for(struct narration *narration, uint8_t actor, size_t at_transition,
                                       bool last_has_ended)
{
    struct narration_line *line = &narration->lines[narration->count > 0 ? narration->count - 1 : 0];
    if (narration->count == 0 || ((last_has_ended || line->actor != actor) && narration->count < DEPTH_MAX)) {
        line = &narration->lines[narration->count++];
        *line = (struct narration_line){.actor = actor, .first_transition = at_transition};
    }
    line->transitions = at_transition - line->first_transition + 1;
    return line;
}

/* Is this a failed release after a command whose text says the same? */
static bool is_told_before(const struct event *event, const struct event *before)
{
    return event->what == STEP_UNLOCK && event->value == 0 && before && before->value == 0 &&
           before->actor == event->actor && (before->what == STEP_DEL || before->what == STEP_GET);
}

static void tell_lines(const struct execution *execution, const struct replay *replay,
                       struct narration *narration)
{
    bool ended = false;
    size_t e = 0;
    for (size_t m = 0; m < execution->transition_count; m++) {
        for (; e < execution->transition_ends[m]; e++) {
            const struct event *event = &execution->trace.events[e];
            char text[60];
            event_text(event, text, sizeof text);
            if (!*text || is_told_before(event, e > 0 ? event - 1 : NULL))
                continue;
            struct narration_line *line = line_for(narration, event->actor, m, ended);
            size_t used = strlen(line->text);
            snprintf(line->text + used, sizeof line->text - used, "%s%s", used ? ", " : "", text);
            line->stock = replay->stock[m];
            ended = ends_line(event);
        }
        if (narration->count > 0)
            narration->lines[narration->count - 1].stock = replay->stock[m];
    }
}

void narrate(const struct execution *execution, const struct replay *replay, struct narration *ret_narration)
{
    *ret_narration = (struct narration){0};
    tell_lines(execution, replay, ret_narration);
    explain_execution(execution, ret_narration->explanation, sizeof ret_narration->explanation);
}

/* ---- printing ------------------------------------------------------------------------------------------------- */

static void print_padded(FILE *out, const char *text, size_t width)
{
    fputs(text, out);
    for (size_t used = display_width(text); used < width; used++)
        fputc(' ', out);
}

void narration_print(const struct execution *execution, const struct narration *narration, FILE *out)
{
    enum { GAP = 2, NUMBER = 4 };
    size_t width[ACTORS_MAX];
    for (size_t i = 0; i < execution->settings.actors; i++)
        width[i] = 1 + GAP;
    for (size_t i = 0; i < narration->count; i++) {
        size_t needs = display_width(narration->lines[i].text) + GAP;
        if (needs > width[narration->lines[i].actor])
            width[narration->lines[i].actor] = needs;
    }
    print_padded(out, "  #", NUMBER);
    for (size_t i = 0; i < execution->settings.actors; i++)
        print_padded(out, (char[]){actor_name((unsigned)i), '\0'}, width[i]);
    fputs("stock\n", out);
    for (size_t i = 0; i < narration->count; i++) {
        const struct narration_line *line = &narration->lines[i];
        fprintf(out, "%3zu ", i + 1);
        for (size_t a = 0; a < execution->settings.actors; a++)
            print_padded(out, line->actor == a ? line->text : "", width[a]);
        fprintf(out, "%" PRId64 "\n", line->stock);
    }
}

json_t *events_json(const struct execution *execution, const struct replay *replay)
{
    json_t *steps = json_array();
    size_t e = 0;
    for (size_t m = 0; m < execution->transition_count; m++)
        for (; e < execution->transition_ends[m]; e++) {
            const struct event *event = &execution->trace.events[e];
            char text[60], actor[] = {actor_name(event->actor), '\0'};
            event_text(event, text, sizeof text);
            const char *step = event->what == EVENT_WAITS ? "waits"
                               : event->what < EVENT_WAITS || event->what == EVENT_ENDED
                                   ? stop_name(event->what)
                                   : text;
            json_array_append_new(steps, json_pack("{s:s, s:s, s:s, s:I}", "actor", actor, "step", step,
                                                   "text", text, "stock", (json_int_t)replay->stock[m]));
        }
    return steps;
}

#define MEMBER(name, member) JSON_MEMBER(name, struct ending, member, false)

static const struct json_member ENDING[] = {
    MEMBER("sold", audit.sold),     MEMBER("left", audit.left),
    MEMBER("oversold", oversold),   MEMBER("drift", drift),
    MEMBER("undersold", undersold), MEMBER("waited", waited),
    MEMBER("deadlock", deadlock),   MEMBER("stuck", stuck),
    MEMBER("robbed", lock_stolen),  MEMBER("two_holders", two_holders),
    MEMBER("failed", failed),       MEMBER("false_refusal", false_refusal),
    MEMBER("leaked", leaked),
};

json_t *ending_json(const struct execution *execution)
{
    static const struct json_members TABLE = JSON_MEMBERS(ENDING);
    const struct ending *ending = &execution->ending;
    json_auto_t *outcomes = json_array();
    for (size_t i = 0; i < execution->settings.actors; i++)
        json_array_append_new(outcomes, json_string(outcome_name(ending->outcomes[i])));
    json_t *object = members_pack(&TABLE, ending);
    if (object && json_object_set(object, "outcomes", outcomes) == 0)
        return object;
    json_decref(object);
    return NULL;
}
