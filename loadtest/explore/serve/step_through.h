/* Answers the questions of the step-through page. A question is a schedule, perhaps with one more transition; the answer is the
 * state that it leads to. No order is held between two questions. For one thread. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SERVE_STEP_THROUGH_H
#define OVERSELL_LOADTEST_EXPLORE_SERVE_STEP_THROUGH_H

#include "loadtest/explore/exec/execution.h"

#include <jansson.h>

/* Connections that are kept between questions, since the next one is usually about the same strategy. Large: static storage. */
struct stepper {
    const char *url; /* of the database; not ours */
    struct product_schema schema;
    bool has_schema;
    struct execution execution;
    bool has_execution;
};

/* Answers {"schedule","move","every_step"} with a state, and {"schedule","faults"} with the row of a search; or with
 * {"problem","detail"}, and "backend" if a server is unavailable. A new reference; NULL: out of memory. *RET_BROKEN: ask no
 * further question. */
json_t *stepper_answer(struct stepper *stepper, const json_t *question, bool *ret_broken);
void stepper_close(struct stepper *stepper);

/* loadtest explore --serve: answers each line of stdin with a line on stdout, until the end of stdin, an interrupt, or 60 s
 * without a question. URL: of the database. Returns an exit status. */
int explore_serve(const char *url);

#endif
