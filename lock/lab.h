/* What the explorer can do to a lock, in addition to what a lock's callers can do: time passes at once, and a thread sleeps only when
 * the explorer says so. Nothing here is called while the service sells. */
#ifndef OVERSELL_LOCK_LAB_H
#define OVERSELL_LOCK_LAB_H

#include "lock/lock_driver.h"

/* How the explorer ends a grant of this lock from outside its holder. */
enum lock_end {
    LOCK_ENDS_BY_RENEWAL, /* by a renewal for less than no time; by a release where the driver has no renew */
    LOCK_ENDS_BY_RELEASE, /* by a release with another handle, where a renewal cannot shorten a lease */
    LOCK_ENDS_WITH_SESSION, /* by terminating the PostgreSQL session whose pid the grant's token begins with, up to "/" */
};

struct lock_lab {
    /* Where expire is NULL: */
    enum lock_end end;
    /* The lock whose handles act on a grant from outside, if this lock's handles know only their own grants; NULL: this
     * lock itself. */
    const struct lock_driver *outsider;
    /* Ends GRANT's lease, or a waiter's place in the queue, now, as time would. With another handle than the one that
     * acquired; also before its holder learns of the grant. LOCK_LOST: there is no such lease, or not any more. NULL:
     * `end` says how else. */
    enum lock_status (*expire)(struct lock *lock, const struct lock_grant *grant);
    /* Would the waiter whose place in the queue is PLACE get the lock if it tried now? With the waiter's handle while its
     * thread is held before its sleep (begin_sleep), from any thread. NULL: waiters of this lock are woken by what they watch. */
    bool (*has_turn)(struct lock *lock, const struct lock_grant *place);
    /* All waiters of the lock's queue watch the first place in it. False: each watches the place before its own. */
    bool watches_first;
};

#endif
