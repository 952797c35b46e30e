/* The watchdog: a thread for each server that prolongs the leases of the locks that are held there by this process. */
#ifndef OVERSELL_LOCK_LEASE_RENEWER_H
#define OVERSELL_LOCK_LEASE_RENEWER_H

#include "lock/lock.h"

/* From now on the lease of HOLDER's grant is prolonged to what it is now, holder->lease_ms, at every third of it, until
 * lease_renewer_remove or until it is found lost. False when out of memory or threads: then the lease will end by itself. Any
 * thread may call. */
bool lease_renewer_add(const struct lock *holder, const struct lock_grant *grant);
/* When it returns, no renewal of HOLDER's grant (NULL: of any of them) is under way. Nothing happens to a grant that is
 * not watched. */
void lease_renewer_remove(const struct lock *holder, const struct lock_grant *grant);

#endif
