/* The notation of schedules: `A>read B>end A>end` lets A go through its read, then B to its end, then A. Stops are named,
 * not numbered, so that a script outlives a change of the steps. `B>lock~` is expected to wait there; `A!crash`,
 * `A!expire`, `A!restart`, `A!cut` and `A!timeout` are faults. Pure. */
#ifndef OVERSELL_LOADTEST_EXPLORE_CORE_SCHEDULE_NOTATION_H
#define OVERSELL_LOADTEST_EXPLORE_CORE_SCHEDULE_NOTATION_H

#include "loadtest/explore/core/transition.h"

#include <stdbool.h>

enum { SCRIPT_MAX = 128, SCRIPT_TEXT = SCRIPT_MAX * 20 };

/* One word. */
struct script_part {
    uint8_t actor;
    uint8_t kind; /* enum transition_kind */
    uint8_t stop; /* TRANSITION_STEP: enum step, EVENT_RETRY or EVENT_ENDED */
    bool waits;   /* it is to wait before it gets there */
};

struct script {
    struct script_part parts[SCRIPT_MAX];
    size_t count;
};

/* Reads words with spaces between. False, with RET_ERROR (SIZE bytes) saying what is wrong and what is valid. */
bool script_parse(const char *text, size_t actors, struct script *ret_script, char *ret_error, size_t size);
/* Writes it back; BUFFER of SCRIPT_TEXT bytes, returned. */
const char *script_words(const struct script *script, char *buffer);
/* Adds a part; one too many is left out. */
void script_add(struct script *script, struct script_part part);

/* "read", "end", "retry"; static storage. */
const char *stop_name(uint8_t stop);
/* 'A' for 0. */
char actor_name(unsigned actor);

#endif
