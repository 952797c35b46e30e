/* Writes the requests of an order as JSON or text, event by event. */
#include "loadtest/explore/explain/sent_requests.h"

#include "loadtest/search/schedule_notation.h"

#include <string.h>

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

/* Adds request NUMBER of EVENT's actor as it was then. False: the recorder has not kept it, or out of memory. */
static bool add_request(const struct execution *execution, const struct event *event, unsigned number,
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
    return json_array_append_new(sent, request) == 0; /* which refuses NULL */
}

static json_t *sent_json(const struct execution *execution, size_t i, unsigned *ret_left_out)
{
    const struct event *event = &execution->trace.events[i], *before = event_before(execution, i);
    json_t *sent = json_array();
    unsigned from = before ? before->sent : 0;
    *ret_left_out = 0;
    if (!execution->trace.recorders[event->actor])
        return sent;
    /* The answer that the actor was waiting for has come. */
    if (before && before->answered < before->sent && event->answered >= before->sent)
        (void)add_request(execution, event, from - 1, true, sent);
    for (unsigned number = from; number < event->sent; number++)
        if (json_array_size(sent) == SENT_MAX || !add_request(execution, event, number, false, sent))
            ++*ret_left_out;
    return sent;
}

void sent_set(const struct execution *execution, size_t i, json_t *step)
{
    unsigned left_out;
    json_object_set_new(step, "sent", sent_json(execution, i, &left_out));
    if (left_out > 0)
        json_object_set_new(step, "sent_left_out", json_integer(left_out));
}

/* ---- for a terminal -------------------------------------------------------------------------------------------- */

static void print_request(const json_t *request, FILE *out)
{
    const char *answer = json_string_value(json_object_get(request, "answer"));
    size_t i;
    const json_t *value;
    bool sent_before = json_object_get(request, "sent_before");
    fprintf(out, "    %s%s: %s\n", json_string_value(json_object_get(request, "to")),
            sent_before ? ", sent before" : "", json_string_value(json_object_get(request, "text")));
    json_array_foreach(json_object_get(request, "values"), i, value)
        fprintf(out, "%s%s", i ? ", " : "        ", json_is_null(value) ? "NULL" : json_string_value(value));
    fputs(i ? "\n" : "", out);
    fprintf(out, "        → %s\n", answer ? answer : "(no answer yet)");
}

void sent_print(const struct execution *execution, FILE *out)
{
    for (size_t e = 0; e < execution->trace.event_count; e++) {
        const struct event *event = &execution->trace.events[e];
        unsigned left_out;
        json_auto_t *sent = sent_json(execution, e, &left_out);
        size_t i;
        const json_t *request;
        if (json_array_size(sent) > 0 || left_out > 0)
            fprintf(out, "%c %s\n", actor_name(event->actor),
                    event->what == EVENT_WAITS ? "waits" : stop_name(event->what));
        json_array_foreach(sent, i, request)
            print_request(request, out);
        if (left_out > 0)
            fprintf(out, "    %u more %s not shown\n", left_out,
                    left_out == 1 ? "request is" : "requests are");
    }
}
