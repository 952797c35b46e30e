/* Faults as moves of a play: one in a schedule, at any point. For the controller, with the scene's mutex held. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_FAULT_TRANSITIONS_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_FAULT_TRANSITIONS_H

#include "loadtest/explore/exec/execution.h"

/* Adds the faults that can happen to the STEPS moves in MOVES; returns how many there are then. */
size_t faults_enabled(const struct execution *execution, struct transition *transitions, size_t steps);
/* Lets it happen. False, with the play's error: it cannot be done. */
bool fault_make(struct execution *execution, struct transition transition);
#endif
