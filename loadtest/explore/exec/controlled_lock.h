/* A controlled lock: a handle through which an actor uses its strategy's lock, and which never waits for time. Where the lock
 * is taken it makes one try, and the controller holds the actor until it may try again. Its lease ends only when a fault
 * transition ends it. For the actor's thread, or for the controller while the actor is held before its first step. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_CONTROLLED_LOCK_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_CONTROLLED_LOCK_H

#include "loadtest/explore/exec/actor_thread.h"

/* Opens the lock of STRATEGY for ACTOR's next order, unless it is open. *NEXT_PROCESS counts processes, if locks must take each actor
 * for a separate process; NULL: all actors are one process. False, with RET_ERROR. */
bool controlled_lock_open(struct actor *actor, const struct strategy *strategy, unsigned *next_process,
                          char *ret_error, size_t size);
/* Closes the actor's handle, if it has one. */
void controlled_lock_close(struct actor *actor);
/* Makes one more server of the actor's lock unreachable for it, until its next order. False: the lock has no such server. */
bool controlled_lock_cut(struct actor *actor);

#endif
