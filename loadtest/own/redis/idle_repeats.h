/* Recognizes a request that repeats a Redis command that changes nothing, for example while it waits for a lock. The next try has the
 * same result until another request has changed something. So a search holds it until then, and is finite. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_REDIS_IDLE_REPEATS_H
#define OVERSELL_LOADTEST_OWN_REDIS_IDLE_REPEATS_H

#include "loadtest/search/transition.h"

#include <stdbool.h>

/* All zero: nothing has been sent. */
struct idle_repeats {
    struct {
        uint64_t command, others; /* the last one that changed nothing, and the changes of others by then */
        unsigned times;           /* in a row */
    } last[ACTORS_MAX];
    uint64_t changes, own[ACTORS_MAX]; /* in Redis, by all and by each request */
};

/* A number for the command with TEXT and KEYS, as struct gate_connection has them: its name and keys count, its arguments do not. */
uint64_t idle_repeats_command(const char *text, const char *keys);
/* ACTOR's COMMAND has ended. MAY_LOCK: it can take a lock, so that the first repetition counts. Else the third one does, since a program may
 * read the same key again. */
void idle_repeats_ended(struct idle_repeats *repeats, unsigned actor, uint64_t command, bool may_lock,
                        bool changed);
/* Something else has changed data in Redis, or time has passed. */
void idle_repeats_changed(struct idle_repeats *repeats);
/* Would COMMAND, which ACTOR sends next, have the same result as before? */
bool idle_repeats_is(const struct idle_repeats *repeats, unsigned actor, uint64_t command);

#endif
