/* An explorer: `loadtest explore --serve` as a child process of the service, which answers each line with a line. */
#ifndef OVERSELL_SERVICE_RUNS_EXPLORER_H
#define OVERSELL_SERVICE_RUNS_EXPLORER_H

#include "base/clock.h"
#include "service/config/config.h"

#include <jansson.h>

struct explorer;

/* Its thread ends an explorer that nobody has asked for this time. */
enum { EXPLORER_IDLE_US = 45000000 };

enum explorer_answer {
    EXPLORER_ANSWERED,
    EXPLORER_MISSING, /* the load test is not installed */
    EXPLORER_SILENT,  /* it died, or did not answer by the deadline; it has been ended */
};

/* Asks *EXPLORER, and starts it first if it is NULL or has ended. One thread makes all calls for an explorer; the explorer dies
 * with that thread. EXPLORER_ANSWERED: the caller releases *ret_answer with json_decref. DEADLINE: monotonic_us. */
enum explorer_answer explorer_ask(struct explorer **explorer, const struct config *config,
                                  const json_t *question, int64_t deadline_us, json_t **ret_answer);
/* Ends the explorer and waits until it has dropped its schema and exited. EXPLORER may be NULL. */
void explorer_end(struct explorer *explorer);

#endif
