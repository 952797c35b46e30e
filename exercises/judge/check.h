/* One check of a learner's strategy: a child process with a time limit, and what its figures say. */
#ifndef OVERSELL_EXERCISES_CHECK_H
#define OVERSELL_EXERCISES_CHECK_H

#include "exercises/judge/task.h"

#include <stdint.h>

enum result_status {
    RESULT_PASSED,
    RESULT_FAILED,  /* the strategy is wrong, or does not end */
    RESULT_ERRED,   /* it could not be looked at: it died, or its row is not what was asked for */
    RESULT_SKIPPED, /* it was not looked at */
};

enum { OUTPUT_MOST = 500 }; /* of what the learner's code prints, as exercism has it */

struct result {
    enum result_status status;
    char command[PATH_MAX + 600]; /* what is run, as one would type it */
    const char *help;             /* where the check's own help would mislead; else NULL; static storage */
    char summary[400];            /* in a line */
    char replay[PATH_MAX + 1000]; /* the command that shows a schedule that goes wrong; "" for none */
    char explanation[1200];       /* of that schedule, or "" */
    char output[OUTPUT_MOST + 100];
};

/* Where and how all checks run. */
struct judging {
    const char *build;              /* the folder of results and logs */
    const char *program;            /* the learner's loadtest, which has its order-service beside it */
    int64_t limit_ms;               /* for each check */
    const char *const *environment; /* of the children: where the servers are */
};

/* Fills in the command. */
void check_name_command(const struct check *check, const char *program, struct result *result);
/* Runs CHECK of TASK. Who does not end in time is killed, and has failed. */
void check_run(const struct task *task, const struct check *check, const struct judging *judging,
               struct result *result);

#endif
