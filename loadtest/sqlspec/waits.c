/* Asks the server which sessions of a specification wait, for what, and for whom. */
#include "base/clock.h"
#include "base/text.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/sqlspec/connections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTROL_US = 10000000, WAITS_SQL_MAX = 8192, LOCK_SQL_MAX = 2048 };

static size_t session_of(const struct connections *connections, int64_t id)
{
    size_t i = 0;
    while (i < connections->spec->session_count && connections->sessions[i]->id != id)
        i++;
    return i;
}

static int64_t cell_number(const json_t *row, size_t column)
{
    const char *text = json_string_value(json_array_get(row, column));
    return text ? strtoll(text, NULL, 10) : -1;
}

bool connections_waits(struct connections *connections, uint32_t ret_holders[SPEC_SESSIONS_MAX])
{
    struct session *control = connections->control;
    size_t count = connections->spec->session_count, i;
    int64_t ids[SPEC_SESSIONS_MAX + 1];
    char sql[WAITS_SQL_MAX];
    json_t *row;
    for (size_t n = 0; n < count; n++) {
        ids[n] = connections->sessions[n]->id;
        ret_holders[n] = 0;
    }
    ids[count] = control->id; /* the setup may have left a lock */
    int64_t now_us = monotonic_us();
    if (now_us < connections->next_ask_us) {
        session_poll(connections->sessions, count, (int)((connections->next_ask_us - now_us) / 1000) + 1);
        if (monotonic_us() < connections->next_ask_us)
            return true;
    }
    control->driver->waits_sql(ids, count + 1, sql, sizeof sql);
    if (!session_run(control, sql, monotonic_us() + CONTROL_US)) {
        if (!interrupted())
            complain("cannot ask %s which sessions wait: %s", control->driver->server, control->error);
        return false;
    }
    connections->next_ask_us = monotonic_us() + (int64_t)control->driver->waits_pause_ms * 1000;
    const json_t *rows = json_object_get(json_array_get(control->results, 0), "rows");
    json_array_foreach(rows, i, row) {
        size_t waiter = session_of(connections, cell_number(row, 0)),
               holder = session_of(connections, cell_number(row, 1));
        if (waiter < count)
            ret_holders[waiter] |= holder < count && holder != waiter ? 1u << holder : HOLDER_UNKNOWN;
    }
    /* A holder that is known makes one that is not, such as a parallel worker's, uninteresting. */
    for (size_t n = 0; n < count; n++)
        if (ret_holders[n] != HOLDER_UNKNOWN)
            ret_holders[n] &= ~HOLDER_UNKNOWN;
    return true;
}

void connections_describe_wait(struct connections *connections, size_t session, uint32_t holders,
                               char ret_text[LOCK_TEXT_SIZE])
{
    struct session *control = connections->control;
    const struct spec *spec = connections->spec;
    char sql[LOCK_SQL_MAX];
    size_t used, holder = spec->session_count;
    control->driver->lock_sql(connections->sessions[session]->id, sql, sizeof sql);
    bool asked = session_run(control, sql, monotonic_us() + CONTROL_US);
    const json_t *row = asked
                            ? json_array_get(json_object_get(json_array_get(control->results, 0), "rows"), 0)
                            : NULL;
    const char *lock = json_string_value(json_array_get(row, 0));
    used = (size_t)snprintf(ret_text, LOCK_TEXT_SIZE, "%.150s", lock ? lock : "a lock");
    if (row)
        holder = session_of(connections, cell_number(row, 1));
    if (holder < spec->session_count)
        holders |= 1u << holder;
    bool is_first = true;
    for (size_t i = 0; i < spec->session_count && used < LOCK_TEXT_SIZE; i++)
        if (holders & 1u << i && i != session) {
            used += (size_t)snprintf(ret_text + used, LOCK_TEXT_SIZE - used, "%s%.60s",
                                     is_first ? ", which is held by " : " and ", spec->sessions[i].name);
            is_first = false;
        }
    if (is_first && row && cell_number(row, 1) == control->id && used < LOCK_TEXT_SIZE)
        (void)snprintf(ret_text + used, LOCK_TEXT_SIZE - used, ", which is held by the setup of the file");
    text_mend(ret_text);
}
