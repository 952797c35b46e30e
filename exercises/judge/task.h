/* A task: exercises/NAME/task.json says what a learner's strategy must do and which checks it must pass. */
#ifndef OVERSELL_EXERCISES_TASK_H
#define OVERSELL_EXERCISES_TASK_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

/* How a check runs the strategy. */
enum check_kind {
    CHECK_EXPLORE, /* every schedule of a few orders: "never" lists the figures that must be 0 */
    CHECK_REPLAY,  /* one schedule, as for `explore --replay` */
    CHECK_COMPARE, /* a short load, and an audit after it */
};

/* The strings belong to the task. */
struct check {
    const char *name;
    enum check_kind kind;
    const char *never;  /* CHECK_EXPLORE, CHECK_REPLAY */
    const char *replay; /* CHECK_REPLAY: the schedule */
    json_t *arguments;  /* CHECK_EXPLORE, CHECK_COMPARE: arguments for loadtest */
    const char *help;   /* printed when the check fails: the trap to look for */
};

enum { CHECKS_MAX = 12 };

struct task {
    char name[64];
    char folder[PATH_MAX];
    json_t *json;
    const char *title;
    const char *guarantee; /* what the row must promise */
    bool redis;            /* the strategy needs Redis */
    const json_t *hints;   /* an array of texts */
    struct check checks[CHECKS_MAX];
    size_t check_count;
};

/* Reads the task NAME of the folder EXERCISES. False, having said on stderr what is wrong, and which tasks there are. */
bool task_load(const char *exercises, const char *name, struct task *ret_task);
void task_free(struct task *task);

/* The name of the task after NAME in the folder EXERCISES, "" if NAME is the last one. */
void task_find_next(const char *exercises, const char *name, char *ret_next, size_t size);

#endif
