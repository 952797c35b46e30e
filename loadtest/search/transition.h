/* The transitions that the explorer chooses between, and the events that an order reports while a transition runs. A schedule
 * is a sequence of transitions; a trace is the sequence of events that it leads to. */
#ifndef OVERSELL_LOADTEST_SEARCH_TRANSITION_H
#define OVERSELL_LOADTEST_SEARCH_TRANSITION_H

#include "base/observer.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ACTORS_MAX = 4,   /* orders that run at the same time: A, B, C, D; an order and its thread are an actor */
    ENABLED_MAX = 24, /* transitions that can be enabled at the same time */
};

enum transition_kind {
    TRANSITION_STEP,   /* the actor runs up to its next step, or until it has to wait */
    TRANSITION_EXPIRE, /* fault: the lease, session or connection of the actor's lock ends */
    TRANSITION_CRASH,  /* fault: the actor dies; its connections are cut, nothing is released */
    TRANSITION_RESTART, /* fault, in scripts only: one more of its lock's servers restarts without its memory */
    TRANSITION_CUT, /* fault, in scripts only, before the actor begins: one more such server is unreachable for it */
    TRANSITION_TIMEOUT, /* fault: the actor's wait for a lock reaches its time limit */
    TRANSITION_KIND_COUNT
};

struct transition {
    uint8_t actor;
    uint8_t kind; /* enum transition_kind */
};

/* An event is a step (enum step of base/observer.h) or one of these. */
enum {
    EVENT_RETRY = STEP_COUNT, /* the actor's try failed, and it is about to begin the next one */
    EVENT_WAITS, /* it waits; VALUE: bits of the actors that block it in PostgreSQL, 0: the lock is taken, or WAITS_FOR_EVER */
    EVENT_ENDED,   /* VALUE: enum outcome */
    EVENT_EXPIRED, /* VALUE: 1 if it only had a place in the lock's queue */
    EVENT_CRASHED,
    EVENT_RESTARTED, /* a server of its lock; VALUE: RESTART_ENDED_LOCK if the lock has no majority any more */
    EVENT_CUT,
    EVENT_TIMED_OUT,
    EVENT_LOCK_STOLEN, /* another actor's release has taken its lock away; VALUE: that actor's index */
};

#define RESTART_ENDED_LOCK 1
#define WAITS_FOR_EVER INT64_MIN /* it sleeps in the lock's queue, and nobody will wake it */

struct event {
    uint8_t actor;
    uint8_t what; /* enum step or EVENT_… */
    /* How many requests the actor had sent by then, and had answers to; 0 unless they are recorded. */
    uint16_t sent, answered;
    int64_t value; /* of a step: what base/observer.h says */
};

#endif
