/* Writes the requests of an order as JSON, event by event, and finds out from the events who holds the lock that an order waits for. */
#include "loadtest/explore/serve/sent_json.h"

#include <string.h>

enum { SHOWN_MAX = 32 }; /* requests of one event */

/* ---- requests -------------------------------------------------------------------------------------------------- */

/* The previous event of the same actor; NULL: there is none. */
static const struct event *event_before(const struct execution *execution, size_t i)
{
    const struct event *events = execution->trace.events;
    for (size_t j = i; j > 0; j--)
        if (events[j - 1].actor == events[i].actor)
            return &events[j - 1];
    return NULL;
}

/* Adds request NUMBER of EVENT's actor as it was then. */
static void add_request(const struct execution *execution, const struct event *event, unsigned number,
                        bool sent_before, json_t *sent)
{
    const void *connection;
    json_t *request = recorder_request(execution->trace.recorders[event->actor], number, &connection);
    const char *to = json_string_value(json_object_get(request, "to"));
    if (to && strcmp(to, "postgresql") == 0 && connection != execution->actors[event->actor].db)
        json_object_set_new(request, "connection", json_string("lock"));
    if (sent_before)
        json_object_set_new(request, "sent_before", json_true());
    if (number >= event->answered)
        json_object_set_new(request, "answer", json_null());
    json_array_append_new(sent, request); /* which refuses NULL */
}

json_t *sent_json(const struct execution *execution, size_t i)
{
    const struct event *event = &execution->trace.events[i], *before = event_before(execution, i);
    json_t *sent = json_array();
    unsigned from = before ? before->sent : 0;
    if (!execution->trace.recorders[event->actor])
        return sent;
    /* The answer that the actor was waiting for has come. */
    if (before && before->answered < before->sent && event->answered >= before->sent)
        add_request(execution, event, from - 1, true, sent);
    for (unsigned number = from; number < event->sent && json_array_size(sent) < SHOWN_MAX; number++)
        add_request(execution, event, number, false, sent);
    return sent;
}

/* ---- waiting --------------------------------------------------------------------------------------------------- */

/* Does the actor hold the lock after this event? Or hold it no longer? */
static void note_holder(const struct event *event, unsigned *holders)
{
    unsigned bit = 1u << event->actor;
    switch (event->what) {
    case STEP_SETNX:
    case STEP_LOCK: *holders |= bit; break;
    case STEP_UNLOCK:
    case STEP_DEL:
    case EVENT_RETRY:
    case EVENT_ENDED:
    case EVENT_EXPIRED:
    case EVENT_LOCK_STOLEN: *holders &= ~bit; break;
    default: break; /* a crash leaves the lock on its server */
    }
}

unsigned event_waits_for(const struct execution *execution, size_t i)
{
    const struct event *event = &execution->trace.events[i];
    unsigned holders = 0;
    if (event->value == WAITS_FOR_EVER)
        return 0;
    if (event->value != 0)
        return (unsigned)event->value;
    for (size_t j = 0; j < i; j++)
        note_holder(&execution->trace.events[j], &holders);
    return holders & ~(1u << event->actor);
}
