/* `loadtest explore --serve` as a child process of the service: asked a line, it answers a line. */
#ifndef OVERSELL_SERVICE_RUNS_EXPLORER_H
#define OVERSELL_SERVICE_RUNS_EXPLORER_H

#include "base/clock.h"
#include "service/config/config.h"

#include <jansson.h>

struct explorer;

/* After so long without a question it is to be ended. */
enum { EXPLORER_IDLE_US = 45000000 };

enum explorer_answer {
    EXPLORER_ANSWERED,
    EXPLORER_MISSING, /* the load test is not installed */
    EXPLORER_SILENT,  /* it has died, or not answered until the deadline; it has been ended */
};

/* Asks *EXPLORER, which is started where it is NULL, and again where it has ended meanwhile; the calling thread is the one
 * that ends it, or it dies with that thread. *RET_ANSWER: what it said, a new reference, where it ANSWERED. DEADLINE:
 * monotonic_us. */
enum explorer_answer explorer_ask(struct explorer **explorer, const struct config *config,
                                  const json_t *question, int64_t deadline_us, json_t **ret_answer);
/* Ends it and waits until it has gone, with its schema. NULL is none. */
void explorer_end(struct explorer *explorer);

#endif
