/* The notation of a schedule of requests: `A>2 B>end A>end` runs request A until it has run two statements, then B to its end, then A.
 * `A!crash` is a fault. Statements have numbers, since those of a service that we do not know have no names. Pure functions. */
#ifndef OVERSELL_LOADTEST_OWN_SCHEDULES_SCHEDULE_TEXT_H
#define OVERSELL_LOADTEST_OWN_SCHEDULES_SCHEDULE_TEXT_H

#include "loadtest/search/depth_first_search.h"

#include <limits.h>

enum { SCHEDULE_TEXT = DEPTH_MAX * 8 };
#define SCHEDULE_END UINT_MAX

/* One word: a fault, or as many steps of a request. */
struct schedule_part {
    uint8_t actor, kind; /* enum transition_kind */
    unsigned upto;       /* of TRANSITION_STEP: statements since the request began, or SCHEDULE_END */
};

struct schedule {
    struct schedule_part parts[DEPTH_MAX];
    size_t count;
};

/* Reads TEXT, a schedule of ACTORS requests. False, with RET_ERROR (SIZE bytes): what is wrong, and what is valid. */
bool schedule_read(const char *text, size_t actors, struct schedule *ret_schedule, char *ret_error,
                   size_t size);
/* Writes COUNT transitions, which are a whole schedule, to BUFFER, and returns it. */
const char *schedule_write(const struct transition *transitions, size_t count,
                           char buffer[static SCHEDULE_TEXT]);

#endif
