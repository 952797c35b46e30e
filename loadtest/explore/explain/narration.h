/* The narration of a schedule: a table with a column for each order and a line for what it did, and the same as JSON. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXPLAIN_NARRATION_H
#define OVERSELL_LOADTEST_EXPLORE_EXPLAIN_NARRATION_H

#include "loadtest/explore/exec/replay.h"

#include <jansson.h>

/* One line of the table: the events of one actor that follow each other. */
struct narration_line {
    uint8_t actor;
    size_t first_transition, transitions;
    char text[120];
    int64_t stock; /* committed, afterwards */
};

struct narration {
    struct narration_line lines[DEPTH_MAX];
    size_t count;
    char explanation[600];
};

/* Writes COUNT events in one line, such as "A read 1, B read 1, A write 0"; what does not fit in SIZE bytes is left out. */
void events_text(const struct event *events, size_t count, char *ret_text, size_t size);
/* Narrates the schedule that EXECUTION has just run; REPLAY has the stock after each of its transitions. */
void narrate(const struct execution *execution, const struct replay *replay, struct narration *ret_narration);
/* Prints the table, as wide as its texts need. */
void narration_print(const struct execution *execution, const struct narration *narration, FILE *out);
/* [{"actor","step","text","stock"}], one for each event; a new reference. */
json_t *events_json(const struct execution *execution, const struct replay *replay);
/* Is this text of such an event that of a fault, which the explorer made happen? */
bool narration_is_fault(const char *text);
/* {"sold","left","oversold","drift",…,"outcomes"}: the result of the schedule; a new reference. */
json_t *ending_json(const struct execution *execution);

#endif
