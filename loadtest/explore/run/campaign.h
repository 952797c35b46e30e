/* A campaign: searches the schedules of one strategy until none is left or a limit is reached, with preemption bounds 0, 1, 2 …
 * if asked to, and replays the simplest counterexample. For one thread, the controller of its execution. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_CAMPAIGN_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_CAMPAIGN_H

#include "loadtest/explore/run/checkpoint.h"

#include <jansson.h>

enum { REPLAY_RUNS = 10 };

/* The limits of a campaign. */
struct campaign_limits {
    int64_t schedules; /* at most; 0: all */
    int64_t time_ms;   /* at most; 0: as long as it takes */
    int64_t bound;   /* preemptions at most, searched with 0, 1, 2 … in turn; NO_BOUND: one search of all */
    int64_t samples; /* this many random schedules instead of a search; 0: a search */
    int64_t pct;     /* depth of loadtest/search/pct_scheduler.h for these; 0: uniform */
    int64_t seed;    /* of their random numbers */
    int64_t show;    /* counterexamples to keep; 0: one */
    bool reduces;    /* of schedules that are alike one is run */
    bool first;      /* ends with the first schedule that breaks the promise */
};

struct campaign {
    struct execution execution;
    struct search search;
    struct totals totals;
    double coverage; /* search_coverage over all bounds; 1 when every schedule has been run */
    /* if its path is not "", the campaign continues from there, and saves its state there */
    struct checkpoint checkpoint;
    bool complete;
    /* schedules that were run again because they were doubtful or differed from the run before */
    unsigned differed;
    char error[1800]; /* why it could not go on, or "" */
};

/* Called after each schedule with the share that has been searched, 0 to 1. */
typedef void campaign_progress(void *context, double share);

/* Opens the execution; URL and SCHEMA are borrowed until campaign_close. A struct campaign is large: malloc it. False, with ERROR. */
bool campaign_open(struct campaign *campaign, struct product_schema *schema, const char *url,
                   const struct execution_settings *settings);
/* Runs the schedules. PROGRESS may be NULL. False, with ERROR: a search could not continue. */
bool campaign_run(struct campaign *campaign, const struct campaign_limits *limits,
                  campaign_progress *progress, void *context);
void campaign_close(struct campaign *campaign);

/* Replays counterexample number I, of which 0 is the simplest, REPLAY_RUNS times: {"replay","switches","steps","explanation","told",
 * "reproduced"}, or null if there are not as many; a new reference. */
json_t *campaign_counterexample(struct campaign *campaign, size_t i);

#endif
