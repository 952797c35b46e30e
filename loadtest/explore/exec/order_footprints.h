/* What a transition of an order has read and written, as loadtest/search/footprint.h has it: by the steps that it reported, and by what the
 * strategy's row says of them. What is not known meets all. The trace's mutex is held. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_ORDER_FOOTPRINTS_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_ORDER_FOOTPRINTS_H

#include "loadtest/explore/exec/execution.h"

/* A schedule begins. */
void order_footprints_begin(struct execution *execution);
/* TRANSITION, the newest, has come to rest; its events are those from number SINCE on. */
void order_footprints_note(struct execution *execution, struct transition transition, size_t since);

#endif
