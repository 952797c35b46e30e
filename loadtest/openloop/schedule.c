/* When the buyers of a sale come, and for which product: fixed before the sale starts, the same for the same seed. */
#include "loadtest/openloop/schedule.h"

#include "base/prng.h"
#include "loadtest/stats/zipf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct shape SHAPES[] = {
    {"flat", 1, {{"flat", 1, 1}}, 0},
    {"flash", 3, {{"quiet", 0.2, 0.1}, {"spike", 0.3, 1}, {"tail", 0.5, 0.4}}, 0.35},
};
/* clang-format on */

#define SHAPE_COUNT (sizeof SHAPES / sizeof SHAPES[0])

const char *const SHAPE_NAMES[] = {"flat", "flash", NULL};

const struct shape *shape_find(const char *name)
{
    for (size_t i = 0; i < SHAPE_COUNT; i++)
        if (strcmp(SHAPES[i].name, name) == 0)
            return &SHAPES[i];
    return NULL;
}

/* ---- chance -------------------------------------------------------------------------------------------- */

enum { STREAM_TIMES, STREAM_PRODUCTS };

/* The state of a generator; a stream for each use, so that more products do not move the arrivals. */
static uint64_t stream_of(int64_t seed, int stream)
{
    return random_from(random_from((uint64_t)seed) + (uint64_t)stream);
}

/* A gap of a Poisson process whose mean gap is 1. */
static double gap(uint64_t *random)
{
    return -log(1 - random_share(random));
}

/* ---- the schedule -------------------------------------------------------------------------------------- */

/* The arrivals of a phase, where all of them together come to schedule_count. */
static double phase_weight(const struct schedule_plan *plan, size_t phase)
{
    return plan->shape->phases[phase].share * plan->shape->phases[phase].pace * plan->rate *
           (double)plan->duration_ms / 1000;
}

static double total_weight(const struct schedule_plan *plan)
{
    double total = 0;
    for (size_t i = 0; i < plan->shape->phase_count; i++)
        total += phase_weight(plan, i);
    return total;
}

size_t schedule_count(const struct schedule_plan *plan)
{
    double total = round(total_weight(plan));
    return total < 1 ? 1 : total > (double)ARRIVALS_MAX ? (size_t)ARRIVALS_MAX + 1 : (size_t)total;
}

/* Where a walk through the phases has come to; SHARE is what lies behind of the time, WEIGHT of the arrivals. */
struct walk {
    size_t phase;
    double share, weight;
};

/* The time, as a share of the duration, by which WEIGHT arrivals have come. Weights only grow from call to call. */
static double time_of(const struct schedule_plan *plan, double weight, struct walk *walk)
{
    const struct shape *shape = plan->shape;
    while (walk->phase + 1 < shape->phase_count && weight > walk->weight + phase_weight(plan, walk->phase)) {
        walk->weight += phase_weight(plan, walk->phase);
        walk->share += shape->phases[walk->phase].share;
        walk->phase++;
    }
    double into = (weight - walk->weight) / phase_weight(plan, walk->phase);
    return walk->share + (into < 1 ? into : 1) * shape->phases[walk->phase].share;
}

/* N arrivals of a Poisson process are N + 1 exponential gaps, stretched to the time that there is. */
static void place_arrivals(const struct schedule_plan *plan, struct schedule *schedule)
{
    uint64_t random = stream_of(plan->seed, STREAM_TIMES);
    double all = 0, passed = 0;
    for (size_t i = 0; i <= schedule->count; i++)
        all += gap(&random);

    random = stream_of(plan->seed, STREAM_TIMES);
    struct walk walk = {0};
    for (size_t i = 0; i < schedule->count; i++) {
        passed += gap(&random);
        double at = time_of(plan, passed / all * total_weight(plan), &walk);
        schedule->arrivals[i].at_us = (int64_t)(at * (double)plan->duration_ms * 1000);
        schedule->arrivals[i].phase = (uint32_t)walk.phase;
    }
}

static void choose_products(const struct schedule_plan *plan, const struct zipf *zipf,
                            struct schedule *schedule)
{
    uint64_t random = stream_of(plan->seed, STREAM_PRODUCTS);
    for (size_t i = 0; i < schedule->count; i++)
        schedule->arrivals[i].product = (uint32_t)zipf_choose(zipf, random_share(&random));
}

bool schedule_open(const struct schedule_plan *plan, struct schedule *ret_schedule)
{
    struct schedule schedule = {.count = schedule_count(plan)};
    struct zipf zipf;
    if (schedule.count > ARRIVALS_MAX || !zipf_open(plan->products, plan->zipf, &zipf))
        return false;
    schedule.arrivals = calloc(schedule.count, sizeof *schedule.arrivals);
    if (schedule.arrivals) {
        place_arrivals(plan, &schedule);
        choose_products(plan, &zipf, &schedule);
        *ret_schedule = schedule;
    }
    zipf_close(&zipf);
    return schedule.arrivals != NULL;
}

void schedule_close(struct schedule *schedule)
{
    free(schedule->arrivals);
    *schedule = (struct schedule){0};
}
