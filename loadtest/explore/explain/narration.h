/* A schedule in words: what each order did, what others could see of it, and why no order of the orders explains it. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXPLAIN_NARRATION_H
#define OVERSELL_LOADTEST_EXPLORE_EXPLAIN_NARRATION_H

#include "loadtest/explore/exec/replay.h"

#include <jansson.h>

/* One line of the story: what one order did in a row. */
struct narration_line {
    uint8_t actor;
    size_t first_transition, transitions;
    char text[120];
    int64_t stock; /* that others could see afterwards */
};

struct narration {
    struct narration_line lines[DEPTH_MAX];
    size_t count;
    char explanation[600];
};

/* Tells the play that REPLAY has just run. */
void narrate(const struct execution *execution, const struct replay *replay, struct narration *ret_narration);
/* As columns, one for each order; COLUMNS wide at most, if that is enough. */
void narration_print(const struct execution *execution, const struct narration *narration, FILE *out);
/* [{"actor","step","text","stock"}], a new reference: one for each move. */
json_t *events_json(const struct execution *execution, const struct replay *replay);
/* {"sold","left","oversold","drift",…,"outcomes"}, a new reference: what it came to. */
json_t *ending_json(const struct execution *execution);

#endif
