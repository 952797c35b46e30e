/* The explorer as a partner in conversation: a question is a schedule in its notation, and the answer what can be seen at
 * its end. Nothing is held from one question to the next. For one thread. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SERVE_STEP_THROUGH_H
#define OVERSELL_LOADTEST_EXPLORE_SERVE_STEP_THROUGH_H

#include "loadtest/explore/exec/execution.h"

#include <jansson.h>

/* What is kept between questions, since the next is mostly about the same strategy. Large: static storage. */
struct stepper {
    const char *url; /* of the database; not ours */
    struct product_schema schema;
    bool has_schema;
    struct execution execution;
    bool has_execution;
};

/* Answers {"schedule","move","every_step"}, or {"schedule","faults"} for a search: the state or the row that the search
 * gave, or {"problem","detail"} and where a server is away its name, "backend". A new reference; NULL: out of memory.
 * *RET_BROKEN: the stepper should not be asked any more. */
json_t *stepper_answer(struct stepper *stepper, const json_t *question, bool *ret_broken);
void stepper_close(struct stepper *stepper);

/* Answers a question a line of stdin with a line on stdout, until the end of stdin, an interrupt, or a minute without a
 * question. URL: of the database. Returns an exit status. */
int explore_serve(const char *url);

#endif
