/* Replay: runs the schedule that a script describes, and describes the schedule that an execution has run. For the controller. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_REPLAY_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_REPLAY_H

#include "loadtest/explore/exec/execution.h"
#include "loadtest/search/schedule_notation.h"

struct replay {
    int64_t stock[DEPTH_MAX]; /* the committed stock after each transition */
    char error[400];          /* the word at which it failed, and why */
};

/* Starts EXECUTION from a fresh state and runs the script; then every actor is held where the script leaves it, and the caller
 * must call execution_end. False, with an error, and the schedule has ended: in *RET_REPLAY, the script cannot be followed;
 * in EXECUTION too, a server failed. */
bool replay_follow(struct execution *execution, const struct script *script, struct replay *ret_replay);
/* Is the transition enabled now? */
bool replay_is_enabled(struct execution *execution, struct transition transition);
/* Runs an enabled transition, and records the stock after it. False, with REPLAY's error. */
bool replay_apply(struct execution *execution, struct transition transition, struct replay *replay);

/* As replay_follow; then runs all actors to their end, A first, and ends the schedule. False, with REPLAY's error. */
bool replay_run(struct execution *execution, const struct script *script, struct replay *ret_replay);

/* Writes the shortest script for the transitions that EXECUTION has run. */
void script_of_execution(const struct execution *execution, struct script *ret_script);

#endif
