/* The invariants of an execution, checked after every transition and at its end; findings go into its struct ending. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_INVARIANTS_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_INVARIANTS_H

#include "loadtest/explore/exec/execution.h"

/* Checks the lock and the refusals after a transition, whose events are those from number SINCE on. The controller calls,
 * with the trace's mutex held (it is released while PostgreSQL is asked). False, with the execution's error: PostgreSQL
 * does not answer. */
bool invariants_check(struct execution *execution, size_t since);
/* Compares audit, outcomes and acknowledgements when every order has ended. Fills in the rest of the ending. */
void invariants_check_end(struct execution *execution);

/* Did the strategy let something happen that it must not, whatever it promises? */
bool ending_is_bad(const struct ending *ending);
/* Was the lock itself at fault, even if no harm came of it? */
bool ending_breaks_lock(const struct ending *ending);

#endif
