/* Depth-first search over all orders in which moves can be made. It knows nothing of what is moved: a world starts
 * anew for each schedule, says what can be done next, and does it. */
#ifndef OVERSELL_LOADTEST_EXPLORE_CORE_DEPTH_FIRST_SEARCH_H
#define OVERSELL_LOADTEST_EXPLORE_CORE_DEPTH_FIRST_SEARCH_H

#include "loadtest/explore/core/pct_scheduler.h"

#include <stdbool.h>

enum {
    DEPTH_MAX = 256, /* moves of a schedule */
    NO_BOUND = -1,   /* of preemptions */
};

struct program {
    void *self;
    /* A fresh state. False: it cannot be had. */
    bool (*start)(void *self);
    /* What can be done now, always in the same order; 0: the schedule is over. RET_MOVES has room for ENABLED_MAX. */
    size_t (*enabled)(void *self, struct transition *ret_transitions);
    bool (*apply)(void *self, struct transition transition);
    /* After the last move. */
    bool (*end)(void *self);
    /* In how many moves the order will have ended, if nothing keeps it; for sampling. */
    size_t (*remaining)(void *self, unsigned actor);
    /* After the end: may a slow machine have caused what was seen? Then the schedule is run again, as SEARCH_DOUBTFUL; it must
     * say no in the end. NULL: never. */
    bool (*is_doubtful)(void *self);
    /* All that has been seen so far as one number, the same in every run of the same moves. NULL: only moves are compared. */
    uint64_t (*fingerprint)(void *self);
};

/* One point of the current schedule. */
struct choice_point {
    struct transition transitions[ENABLED_MAX];
    uint8_t count, taken;
    uint8_t possible;     /* moves, whatever the bound says */
    uint8_t preemptions;  /* made before it */
    uint64_t fingerprint; /* until then: struct world */
};

struct search {
    int bound;       /* preemptions at most; NO_BOUND for any number */
    bool samples;    /* schedules at random, uniform over interleavings, in place of all of them … */
    uint64_t random; /* … from this state, never 0 … */
    struct pct pct;  /* … or, where it has a depth, not uniform, but in search of a bug */
    size_t longest;  /* of the schedules so far, for that */
    size_t depth;    /* choices that the next schedule begins with */
    bool done;       /* there is no further schedule … */
    bool cut;        /* … but the bound has kept some out */
    struct choice_point path[DEPTH_MAX];
    size_t length; /* of the last schedule */
    char error[160];
};

enum search_outcome {
    SEARCH_RAN,      /* one more schedule */
    SEARCH_DONE,     /* there was none left */
    SEARCH_DIFFERS,  /* it did not go as when this schedule's beginning was run before; never of samples */
    SEARCH_DOUBTFUL, /* it ended, but the world doubts what was seen */
    SEARCH_FAILED,   /* the world said no; or a schedule without an end */
};

/* Runs the next schedule. After SEARCH_DIFFERS or SEARCH_DOUBTFUL the same one is due again. A sample that goes another way
 * then than when it was doubtful continues at random from there. */
enum search_outcome search_run(struct search *search, const struct program *program);

/* The share of all schedules that has been run, where each point shares its weight evenly among its moves: the sum, over
 * the schedules that have been run, of the product of 1/branching. Exactly 1 when all have been. */
double search_coverage(const struct search *search);

/* The last schedule's share of all, as above, whatever the bound says. */
double search_weight(const struct search *search);

/* How often the last schedule let another order go on while the one before it could have. */
unsigned search_preemptions(const struct search *search);

/* The number of times that the moves let one order go on after another. */
unsigned context_switches(const struct transition *transitions, size_t count);

#endif
