/* Notes the steps inside which another session can act, although no schedule of the search does that. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_STEP_INSIDE_H
#define OVERSELL_LOADTEST_SQLSPEC_STEP_INSIDE_H

#include "loadtest/sqlspec/sql_execution.h"

/* Before STEP is started: sets INSIDE of EXECUTION. IN_TRANSACTION: the session of STEP has one open. The first call reads the functions and triggers
 * from the server. False, having said why on stderr: they cannot be read. */
bool step_inside_note(struct sql_execution *execution, size_t step, bool in_transaction);

#endif
