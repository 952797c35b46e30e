/* What a run is doing, as a JSON object a line on stderr, for a program that watches it: --progress json. */
#ifndef OVERSELL_LOADTEST_REPORT_EVENTS_H
#define OVERSELL_LOADTEST_REPORT_EVENTS_H

#include "loadtest/testbed/testbed.h"

#include <jansson.h>
#include <stdbool.h>

/* Where a load is. */
struct event_load {
    const char *strategy;
    const char *phase; /* "sell-out", "throughput" */
    int64_t think_ms;
    size_t step, steps; /* strategies, of which STEP are done */
    double share;       /* 0–1, of the whole step */
    int64_t answers, created;
    double elapsed_s;
};

/* Turns events on; before that the functions below do nothing. */
void events_begin(void);

/* {"load":{…}}, ten times a second at most, and whenever the strategy or the phase is another. */
void events_load(const struct event_load *load);
/* {"traces":[{"instance","traces":[…]},…]}: recent orders of the services that the testbed has started, which nobody can
 * ask any more once it has ended. */
void events_traces(struct testbed *testbed, int64_t product);
/* {"row":{…}}: a strategy is measured; ROW stays the caller's. */
void events_row(const json_t *row);

#endif
