/* A controlled lock: a handle through which an actor uses its strategy's lock, and which never waits for time. Where the lock
 * is taken it makes one try, and the controller holds the actor until it may try again. Its lease ends only when a fault
 * transition ends it. For the actor's thread, or for the controller while the actor is held before its first step. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_CONTROLLED_LOCK_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_CONTROLLED_LOCK_H

#include "loadtest/explore/exec/actor_thread.h"

/* Do waiters of a lock of DRIVER have places in a queue on its server, which they keep while they sleep? NULL: no lock. */
bool lock_has_queue(const struct lock_driver *driver);

/* Opens a controlled lock of DRIVER for ACTOR. The caller frees *RET_LOCK by lock_close. */
enum lock_status controlled_lock_open(const struct lock_driver *driver, struct actor *actor,
                                      struct lock **ret_lock);
/* Closes the actor's handle, if it has one. */
void actor_close_lock(struct actor *actor);
/* Makes one more server of the actor's lock unreachable for it, until its next order. False: the lock has no such server. */
bool actor_cut(struct actor *actor);

#endif
