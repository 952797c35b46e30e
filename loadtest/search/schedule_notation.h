/* The notation of schedules, as used on the command line, in files and on the page: `A>read B>end A>end` runs order A up to
 * its step `read`, then B to its end, then A to its end. Steps have names, not numbers, so that a schedule stays valid when
 * a strategy gets more steps. `B>lock~` expects B to wait before `lock`. `A!crash`, `A!expire`, `A!restart`, `A!cut` and
 * `A!timeout` are faults. Pure functions. */
#ifndef OVERSELL_LOADTEST_SEARCH_SCHEDULE_NOTATION_H
#define OVERSELL_LOADTEST_SEARCH_SCHEDULE_NOTATION_H

#include "loadtest/search/transition.h"

#include <stdbool.h>

enum { SCRIPT_MAX = 128, SCRIPT_TEXT = SCRIPT_MAX * 20 };

/* One word of a schedule; it stands for one transition or for several of the same actor. */
struct script_part {
    uint8_t actor;
    uint8_t kind; /* enum transition_kind */
    uint8_t stop; /* of TRANSITION_STEP, up to where: enum step, EVENT_RETRY or EVENT_ENDED */
    bool waits;   /* '~': the actor is expected to wait before it gets there */
};

/* A schedule as it is written down. */
struct script {
    struct script_part parts[SCRIPT_MAX];
    size_t count;
};

/* Reads TEXT, a schedule of ACTORS orders. False, with RET_ERROR (SIZE bytes): what is wrong, and what is valid. */
bool script_parse(const char *text, size_t actors, struct script *ret_script, char *ret_error, size_t size);
/* Writes the schedule to BUFFER, of SCRIPT_TEXT bytes, and returns it. */
const char *script_words(const struct script *script, char *buffer);
/* Appends a part; ignores it if the script is full. */
void script_add(struct script *script, struct script_part part);

/* The word for where an actor stops: "read", "end", "retry"; static storage. */
const char *stop_name(uint8_t stop);
/* The word for a fault, and the reverse for the LENGTH bytes at WORD; false: it is none. */
const char *fault_name(uint8_t kind);
bool fault_parse(const char *word, size_t length, uint8_t *ret_kind);
/* 'A' for actor 0. */
char actor_name(unsigned actor);

#endif
