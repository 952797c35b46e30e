/* What each order has really sent to the servers before each event of a schedule, and for whom it waits. For the controller, when no
 * actor runs, of an execution whose settings have RECORDS. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXPLAIN_SENT_REQUESTS_H
#define OVERSELL_LOADTEST_EXPLORE_EXPLAIN_SENT_REQUESTS_H

#include "loadtest/explore/exec/execution.h"

#include <jansson.h>
#include <stdio.h>

/* The requests that the actor of event number I has sent since its previous event: a new reference; NULL: out of memory. */
json_t *sent_json(const struct execution *execution, size_t i);

/* Prints the requests of all events: the statement or command, its values, and the answer. */
void sent_print(const struct execution *execution, FILE *out);

/* Bits of the actors that the actor of event number I waits for, if it is EVENT_WAITS; 0: not known. */
unsigned event_waits_for(const struct execution *execution, size_t i);

#endif
