/* The state in the middle of a schedule as JSON, for the step-through page: what each order has done and may do next, who holds
 * the lock, and what the database contains. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SERVE_STATE_JSON_H
#define OVERSELL_LOADTEST_EXPLORE_SERVE_STATE_JSON_H

#include "loadtest/explore/exec/database_view.h"
#include "loadtest/explore/exec/replay.h"

#include <jansson.h>

/* The state of EXECUTION, none of whose actors runs; REPLAY is of the schedule so far, VIEW of this moment. A new reference;
 * NULL: out of memory. *RET_OVER: no order can continue, and no lease that may still end would change that. */
json_t *state_json(struct execution *execution, const struct replay *replay, const struct database_view *view,
                   bool *ret_over);

#endif
