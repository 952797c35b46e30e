/* The requests that each order sent to the servers before each event of a schedule. For the controller, when no actor runs, with an
 * execution whose settings have RECORDS. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXPLAIN_SENT_REQUESTS_H
#define OVERSELL_LOADTEST_EXPLORE_EXPLAIN_SENT_REQUESTS_H

#include "loadtest/explore/exec/execution.h"

#include <jansson.h>
#include <stdio.h>

enum { SENT_MAX = 32 }; /* requests of one event */

/* Sets members of STEP, an object that describes event number I: "sent", the first SENT_MAX requests that the event's actor sent since
 * its previous event, and "sent_left_out", the number of further requests, if there are any. Out of memory: they are missing. */
void sent_set(const struct execution *execution, size_t i, json_t *step);

/* Prints the requests of all events: the statement or command, its values, and the answer. */
void sent_print(const struct execution *execution, FILE *out);

#endif
