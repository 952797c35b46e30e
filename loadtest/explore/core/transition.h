/* What can be done with orders that are held at every step, and what came of it. */
#ifndef OVERSELL_LOADTEST_EXPLORE_CORE_TRANSITION_H
#define OVERSELL_LOADTEST_EXPLORE_CORE_TRANSITION_H

#include "base/observer.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ACTORS_MAX = 4,   /* orders at a time: A, B, C, D */
    ENABLED_MAX = 24, /* that can be made at one point */
};

/* One choice of the controller: an order is let go as far as its next step, or something happens to it. */
enum transition_kind {
    TRANSITION_STEP,
    TRANSITION_EXPIRE,  /* what carries its lock ends: as time would do it */
    TRANSITION_CRASH,   /* it dies: connections cut, nothing released */
    TRANSITION_RESTART, /* one more of its lock's servers restarts without its memory; in scripts only */
    TRANSITION_CUT,     /* before it begins: one more of its lock's servers is away for it; in scripts only */
    TRANSITION_TIMEOUT, /* its wait for a lock ends in vain; in scripts only */
    TRANSITION_KIND_COUNT
};

struct transition {
    uint8_t actor;
    uint8_t kind; /* enum transition_kind */
};

/* What an order reported, in the order of time: a step, or one of these. */
enum {
    EVENT_RETRY = STEP_COUNT, /* its try failed, and it is about to begin the next */
    /* It found the lock taken, or PostgreSQL lets it wait; VALUE: bits of those it waits for, or WAITS_FOR_EVER. */
    EVENT_WAITS,
    EVENT_ENDED, /* VALUE: enum outcome */
    EVENT_EXPIRED,
    EVENT_CRASHED,
    EVENT_RESTARTED,
    EVENT_CUT,
    EVENT_TIMED_OUT,
    EVENT_LOCK_STOLEN, /* another order's release has taken the lock from it; VALUE: that order's index */
};

#define WAITS_FOR_EVER INT64_MIN

struct event {
    uint8_t actor;
    uint8_t what; /* enum step or EVENT_… */
    int64_t value;
};

#endif
