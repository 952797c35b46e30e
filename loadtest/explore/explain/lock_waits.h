/* Finds out from the events of a schedule for which other orders an order waits. For the controller, when no actor runs. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXPLAIN_LOCK_WAITS_H
#define OVERSELL_LOADTEST_EXPLORE_EXPLAIN_LOCK_WAITS_H

#include "loadtest/explore/exec/execution.h"

/* Bits of the actors that ACTOR waits for if it waits for the strategy's lock after the first EVENTS events: the holders; in a lock
 * with a queue the one before it, which may be a waiter too. Never an actor whose lock or place has ended. 0: not known, or nobody.
 * *RET_HOLDERS: bits of the actors that hold the lock then. */
unsigned lock_waits_for(const struct execution *execution, unsigned actor, size_t events,
                        unsigned *ret_holders);

/* Bits of the actors that the actor of event number I waits for, if it is EVENT_WAITS; 0: not known, or nobody. */
unsigned event_waits_for(const struct execution *execution, size_t i);

#endif
