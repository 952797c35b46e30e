/* Acting on a lock from outside its holder: the explorer ends a lease, session or connection as time would do it, makes one of
 * several lock servers forget it, and asks the server who holds it. The holder learns nothing of it. For the controller. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_LOCK_ADMIN_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_LOCK_ADMIN_H

#include "loadtest/explore/exec/actor_thread.h"

/* Do waiters of a lock of DRIVER have places in a queue on its server, which they keep while they sleep? NULL: no lock. */
bool lock_has_queue(const struct lock_driver *driver);

/* Can the lease, session or connection of such a lock end while it is held? */
bool lock_admin_can_expire(const struct lock_driver *driver);

/* A handle for the functions below, for locks of DRIVER; *ret_admin is NULL where they need none. */
enum lock_status lock_admin_open(const struct lock_driver *driver, struct lock **ret_admin);

/* Ends the lease, the session or the connection of the grant in HOLD. LOCK_LOST: it had ended before, or cannot end; any other
 * status: it could not be ended. */
enum lock_status lock_admin_expire(const struct lock_driver *driver, struct lock *admin,
                                   struct product_schema *schema, const struct lock_hold *hold);

/* Makes server number SERVER (from 0 on) of a lock on several servers forget the grant in HOLD, as a restart without its memory
 * would. False: there is no such server, or it did not answer. */
bool lock_admin_forget(const struct lock_driver *driver, unsigned server, const struct lock_hold *hold);

/* The list of the servers of DRIVER's locks, with the last COUNT of them replaced by addresses at which nobody answers. The
 * caller frees it. NULL: there are fewer servers, or the lock has only one, or out of memory. */
char *lock_admin_cut_servers(const struct lock_driver *driver, unsigned count);

/* Does the server still know the grant? True if it cannot be asked. */
bool lock_admin_is_held(struct lock *admin, const struct lock_hold *hold);

/* Removes what a crashed actor has left on the lock's server, so that the next schedule starts without it. */
void lock_admin_clean_up(const struct lock_driver *driver, struct lock *admin, const struct lock_hold *hold);

/* For a lock that is the transaction of a connection: the server process behind it, written to PID; else "". */
const char *lock_admin_session(const struct lock_driver *driver, const struct lock_hold *hold,
                               char pid[static 16]);

#endif
