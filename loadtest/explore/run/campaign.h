/* A hunt: the schedules of one strategy, one after the other, until there is none left or the limit is reached; and its
 * witness, the plainest schedule that went wrong, run again and told. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_CAMPAIGN_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_CAMPAIGN_H

#include "loadtest/explore/run/checkpoint.h"

#include <jansson.h>

enum { REPLAY_RUNS = 10 };

/* How far a hunt goes. */
struct campaign_limits {
    int64_t schedules; /* at most; 0: all */
    int64_t time_ms;   /* at most; 0: as long as it takes */
    int64_t bound;     /* preemptions at most, searched with 0, 1, 2 … in turn; NO_BOUND: all at once */
    int64_t samples;   /* so many schedules at random in place of a search; 0: a search … */
    int64_t
        pct; /* … uniform, or (from 1 on) in search of a bug of this depth: loadtest/explore/core/pct_scheduler.h … */
    int64_t seed; /* … and what the choice of them begins with */
    int64_t show; /* how many of those that went wrong to keep, the plainest; 0: one */
};

struct campaign {
    struct execution execution;
    struct search search;
    struct totals totals;
    double coverage; /* 1 when all has been run */
    struct checkpoint
        checkpoint; /* where its path is not "", the hunt goes on from there, and leaves there how far it came */
    bool complete;
    unsigned differed; /* schedules that did not go as before, or were doubtful, and were run again */
    char error[400];   /* why it could not go on, or "" */
};

/* Told now and then of the share that has been covered. */
typedef void campaign_progress(void *context, double share);

/* Opens the play; a struct hunt is large, and may lie anywhere. False, with ERROR. */
bool campaign_open(struct campaign *campaign, struct product_schema *schema, const char *url,
                   const struct execution_settings *settings);
/* Runs the schedules. False, with ERROR: it could not go on. */
bool campaign_run(struct campaign *campaign, const struct campaign_limits *limits,
                  campaign_progress *progress, void *context);
void campaign_close(struct campaign *campaign);

/* {"replay","switches","steps","explanation","told","reproduced"}, a new reference, having run it REPLAY_RUNS times; null
 * where nothing went wrong. */
json_t *campaign_counterexample(struct campaign *campaign);
/* An array of the next plainest, as many as were kept. */
json_t *campaign_further_counterexamples(struct campaign *campaign);

#endif
