/* When the buyers of a sale come, and for which product: fixed before the sale starts, the same for the same seed. */
#ifndef OVERSELL_LOADTEST_OPENLOOP_SCHEDULE_H
#define OVERSELL_LOADTEST_OPENLOOP_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PHASES_MAX = 3, ARRIVALS_MAX = 10000000 };

struct sale_phase {
    const char *name;
    double share; /* of the sale's time */
    double pace;  /* arrivals per second, as a share of the rate */
};

struct shape {
    const char *name;
    size_t phase_count;
    struct sale_phase phases[PHASES_MAX];
    double sold_out_at; /* the share of the time by which the stock is meant to be gone; 0: never */
};

/* NULL where there is none of this name; SHAPE_NAMES ends with NULL. */
const struct shape *shape_find(const char *name);
extern const char *const SHAPE_NAMES[];

struct schedule_plan {
    const struct shape *shape;
    double rate; /* arrivals per second where the pace is 1 */
    int64_t duration_ms;
    size_t products;
    double zipf;
    int64_t seed;
};

struct arrival {
    int64_t at_us;    /* since the sale's start */
    uint32_t product; /* from 0 */
    uint32_t phase;
};

struct schedule {
    size_t count;
    struct arrival *arrivals; /* by time */
};

/* How many arrivals the plan has: its rate over its time, rounded, whatever the seed. */
size_t schedule_count(const struct schedule_plan *plan);
/* A Poisson process, given its count: buyers who do not know of each other come in random gaps, and it is the crowded
 * moments that make a queue. A constant gap would hide them. False when out of memory, or past ARRIVALS_MAX. */
bool schedule_open(const struct schedule_plan *plan, struct schedule *ret_schedule);
void schedule_close(struct schedule *schedule);

#endif
