/* Replaying: a play that follows a script; and the script that a play has followed. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_REPLAY_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_REPLAY_H

#include "loadtest/explore/core/schedule_notation.h"
#include "loadtest/explore/exec/execution.h"

struct replay {
    int64_t stock[DEPTH_MAX]; /* that others could see, after each move of the play */
    char error[400];          /* where it could not be followed */
};

/* Starts EXECUTION anew and follows the script: everybody then is held where it says, and execution_end has to follow. False, with
 * REPLAY's error: it cannot be followed, or the play has failed, and is over. */
bool replay_follow(struct execution *execution, const struct script *script, struct replay *ret_replay);
/* Can MOVE be made now? */
bool replay_is_enabled(struct execution *execution, struct transition transition);
/* Makes it, and notes the stock. False, with REPLAY's error. */
bool replay_apply(struct execution *execution, struct transition transition, struct replay *replay);

/* Starts EXECUTION anew, follows the script, lets what is left run to its end, A first, and ends the play. False, with
 * REPLAY's error: the script cannot be followed, or the play has failed. */
bool replay_run(struct execution *execution, const struct script *script, struct replay *ret_replay);

/* The shortest script that describes the moves which EXECUTION has made. */
void script_of_execution(const struct execution *execution, struct script *ret_script);

#endif
