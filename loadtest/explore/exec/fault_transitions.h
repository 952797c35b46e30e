/* Fault transitions: a lease that ends, a crash, a timeout, a lock server that restarts or is unreachable. A search makes one
 * fault in each schedule, at any point. For the controller, with the trace's mutex held. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_FAULT_TRANSITIONS_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_FAULT_TRANSITIONS_H

#include "loadtest/explore/exec/execution.h"

/* Appends the enabled faults to TRANSITIONS, which holds STEPS; returns the new number. Where no actor can step, the leases
 * that crashed actors left behind may end. */
size_t faults_enabled(const struct execution *execution, struct transition *transitions, size_t steps);
/* Makes the fault happen. False, with the execution's error. */
bool fault_make(struct execution *execution, struct transition transition);
#endif
