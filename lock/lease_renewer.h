/* Renews the leases of the locks that this process holds, in one thread for each lock server. */
#ifndef OVERSELL_LOCK_LEASE_RENEWER_H
#define OVERSELL_LOCK_LEASE_RENEWER_H

#include "lock/lock.h"

/* Renews the lease of HOLDER's GRANT to holder->lease_ms, at every third of it, until lease_renewer_remove or until the
 * lease is found lost. Copies the grant. False: out of memory or threads, and the lease will end by itself. Any thread. */
bool lease_renewer_add(const struct lock *holder, const struct lock_grant *grant);
/* Stops renewing HOLDER's GRANT (NULL: all its grants) and waits until a renewal under way is done. Does nothing for a grant
 * that was not added. Any thread. */
void lease_renewer_remove(const struct lock *holder, const struct lock_grant *grant);

#endif
