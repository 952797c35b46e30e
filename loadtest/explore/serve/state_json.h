/* A play that is held, as JSON: what each order has done and may do next, what the lock and the database hold. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SERVE_STATE_JSON_H
#define OVERSELL_LOADTEST_EXPLORE_SERVE_STATE_JSON_H

#include "loadtest/explore/exec/database_view.h"
#include "loadtest/explore/exec/replay.h"

#include <jansson.h>

/* What can be seen of EXECUTION, whose orders are all still; REPLAY is of how it came there. A new reference; NULL: out of
 * memory. *RET_OVER: no order can go on, and time will not change that. */
json_t *state_json(struct execution *execution, const struct replay *replay, const struct database_view *view,
                   bool *ret_over);

#endif
