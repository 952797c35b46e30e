/* Adds to the events of a schedule what each order really sent to the servers, and for whom it waits. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SERVE_SENT_JSON_H
#define OVERSELL_LOADTEST_EXPLORE_SERVE_SENT_JSON_H

#include "loadtest/explore/exec/execution.h"

#include <jansson.h>

/* The requests that the actor of event number I has sent since its previous event: a new reference; NULL: out of memory. */
json_t *sent_json(const struct execution *execution, size_t i);

/* Bits of the actors that the actor of event number I waits for, if it is EVENT_WAITS; 0: not known. */
unsigned event_waits_for(const struct execution *execution, size_t i);

#endif
