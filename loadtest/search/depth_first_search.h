/* Stateless model checking: depth-first search over every schedule of a program, by replay. The search keeps no states. It
 * runs each schedule from the start, along the choices of the one before up to the deepest point where a transition is
 * still untried (Godefroid's VeriSoft, POPL 1997). With a bound it leaves out schedules that preempt an actor more often
 * (Musuvathi and Qadeer's CHESS: "Iterative context bounding", PLDI 2007). It can also sample schedules at random.
 * With footprints it runs one schedule of all that differ only in the sequence of transitions that do not meet: a transition
 * that was tried at a point sleeps below its later siblings until one comes that meets it (Godefroid's sleep sets, "Using
 * partial orders to improve automatic verification methods", CAV 1990).
 * Nothing here knows what an actor does; tests search toy programs. One thread. */
#ifndef OVERSELL_LOADTEST_SEARCH_DEPTH_FIRST_SEARCH_H
#define OVERSELL_LOADTEST_SEARCH_DEPTH_FIRST_SEARCH_H

#include "loadtest/search/footprint.h"
#include "loadtest/search/pct_scheduler.h"

#include <stdbool.h>

enum {
    DEPTH_MAX = 256, /* transitions of a schedule */
    NO_BOUND = -1,   /* any number of preemptions */
};

/* The program under test. SELF is passed to each function; false means that the search cannot go on. */
struct program {
    void *self;
    /* Sets up a fresh initial state. */
    bool (*start)(void *self);
    /* Writes the enabled transitions, always in the same order, to RET_TRANSITIONS, which has room for ENABLED_MAX. Returns
     * their number; 0: the schedule is over. */
    size_t (*enabled)(void *self, struct transition *ret_transitions);
    /* Runs one enabled transition to its end. */
    bool (*apply)(void *self, struct transition transition);
    /* Called after the last transition of a schedule. */
    bool (*end)(void *self);
    /* The number of transitions that ACTOR still needs if nothing blocks it; sampling weighs by it. */
    size_t (*remaining)(void *self, unsigned actor);
    /* After the end: might a slow machine explain the result? Then the same schedule runs again (SEARCH_DOUBTFUL). It must
     * return false in the end. NULL: never. */
    bool (*is_doubtful)(void *self);
    /* A hash of all events so far, equal in every run of the same transitions. NULL: only the enabled transitions are
     * compared between runs. */
    uint64_t (*fingerprint)(void *self);
    /* What the transition that was applied last has read and written, with all that it let happen, such as the statement of
     * another actor that waited for it. NULL: every schedule is run, also if only transitions that do not meet change places. */
    void (*footprint)(void *self, struct footprint *ret_footprint);
    /* Called instead of END: from here on the schedule would only repeat others. NULL if FOOTPRINT is. */
    bool (*stop)(void *self);
};

/* A transition that need not be tried, since all that it leads to has run. */
struct sleeper {
    struct transition transition;
    struct footprint footprint;
};

/* One state of the current schedule, with the transitions that can be tried there. */
struct choice_point {
    struct transition transitions[ENABLED_MAX];
    struct footprint footprints[ENABLED_MAX]; /* of those that have been tried */
    struct sleeper sleepers[ENABLED_MAX];     /* enabled as well */
    uint8_t sleeper_count;
    uint8_t count, taken; /* how many there are, and the index of the one that is tried now */
    uint8_t enabled;      /* how many there would be without a bound */
    uint8_t preemptions;  /* of the schedule, before this point */
    uint64_t fingerprint; /* the program's, before this point */
};

/* The whole state of a search: plain memory, so that a checkpoint can save it. Starts zeroed, but for BOUND, SAMPLES, RANDOM
 * and PCT.DEPTH. */
struct search {
    int bound;       /* preemptions of a schedule at most, or NO_BOUND */
    bool samples;    /* random schedules, uniform over the interleavings, instead of every schedule */
    uint64_t random; /* state of base/prng.h for samples; never 0 */
    struct pct pct;  /* PCT.DEPTH > 0: samples are chosen by random priorities instead */
    size_t longest;  /* length of the longest schedule so far; PCT needs it */
    size_t depth;    /* number of choices that the next schedule repeats */
    bool done;       /* no further schedule */
    bool cut;        /* the bound has left schedules out */
    uint64_t pruned; /* schedules that were stopped */
    struct choice_point path[DEPTH_MAX];
    size_t length; /* of the last schedule */
    /* The last schedule, and what its transitions have read and written, if the program tells. */
    struct transition ran[DEPTH_MAX];
    struct footprint footprints[DEPTH_MAX];
    bool reduces;
    bool uncounted; /* the schedules that are alike were too many to count */
    char error[160];
};

enum search_outcome {
    SEARCH_RAN,    /* one more schedule has run */
    SEARCH_DONE,   /* none was left */
    SEARCH_PRUNED, /* it was stopped, since the rest would repeat others */
    SEARCH_DIFFERS, /* not reproducible: the same transitions led to other events than before; never for samples */
    SEARCH_DOUBTFUL, /* it ran, but the program doubts the result */
    SEARCH_FAILED,   /* the program returned false, or the schedule has no end */
};

/* Runs the next schedule. After SEARCH_DIFFERS or SEARCH_DOUBTFUL the next call runs the same one again; a sample that then
 * takes another path continues at random from there. The reason for anything but RAN and DONE is in ERROR. */
enum search_outcome search_run(struct search *search, const struct program *program);

/* The share of the tree of schedules that has been searched, 0 to 1, if every choice point divides its share evenly among its
 * transitions: the sum, over the schedules run, of the product of 1/branching. Exactly 1 when all have been run. */
double search_coverage(const struct search *search);
/* The same for the last schedule alone, as if there were no bound. */
double search_weight(const struct search *search);
/* Returns for how many schedules the last one stands: all that differ from it only in the sequence of transitions that do not meet, so 1 without
 * footprints. BY_SWITCHES (SIZE elements, or NULL) and RET_SIMPLEST (DEPTH_MAX): as for alike_schedules. Also while the program ends it. */
int64_t search_alike(struct search *search, uint64_t *by_switches, size_t size,
                     struct transition *ret_simplest);
/* The preemptions of the last schedule: switches away from an actor that could have made its next step. */
unsigned search_preemptions(const struct search *search);
/* Is WANTED one of the COUNT transitions? */
bool transition_is_among(const struct transition *transitions, size_t count, struct transition wanted);
/* The number of times that one actor follows another in the COUNT transitions. */
unsigned context_switches(const struct transition *transitions, size_t count);

#endif
