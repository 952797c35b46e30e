/* One check of a learner's strategy, and its result. One thread. */
#ifndef OVERSELL_EXERCISES_CHECK_H
#define OVERSELL_EXERCISES_CHECK_H

#include "exercises/judge/task.h"

#include <stdint.h>

enum result_status {
    RESULT_PASSED,
    RESULT_FAILED,  /* the strategy is wrong, or does not end */
    RESULT_ERRED,   /* it could not be checked: the child died, or the row is not what the task asks for */
    RESULT_SKIPPED, /* it was not run */
};

enum { OUTPUT_MOST = 500 }; /* bytes of what the learner's code prints, as in exercism */

struct result {
    enum result_status status;
    char command[PATH_MAX + 600]; /* the command, as one would type it */
    const char
        *help; /* replaces the check's own help if that would mislead; otherwise NULL; static storage */
    char summary[400];            /* one line */
    char replay[PATH_MAX + 1000]; /* the command that replays the counterexample, or "" */
    char explanation[1200];       /* of the counterexample, or "" */
    char output[OUTPUT_MOST + 100];
};

/* Where and how all checks run. */
struct judging {
    const char *build;              /* the folder of results and logs */
    const char *program;            /* the learner's loadtest, which has its order-service beside it */
    int64_t limit_ms;               /* for each check */
    const char *const *environment; /* of the children: where the servers are */
};

/* Sets RESULT's command. */
void check_name_command(const struct check *check, const char *program, struct result *result);
/* Runs CHECK of TASK. A child that does not end in time is killed, and the check has failed. */
void check_run(const struct task *task, const struct check *check, const struct judging *judging,
               struct result *result);

#endif
