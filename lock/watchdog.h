/* The watchdog: one thread that prolongs the leases of the locks that are held in this process. */
#ifndef OVERSELL_LOCK_WATCHDOG_H
#define OVERSELL_LOCK_WATCHDOG_H

#include "lock/lock.h"

/* From now on the grant's lease is prolonged to LEASE_MS at every third of it, until watchdog_forget or until it is
 * found lost. False when out of memory or threads: then the lease will end by itself. Any thread may call. */
bool watchdog_watch(const struct lock_ops *ops, const struct lock_grant *grant, int64_t lease_ms);
/* When it returns, no renewal of this grant is under way. Nothing happens to a grant that is not watched. */
void watchdog_forget(const struct lock_ops *ops, const struct lock_grant *grant);

#endif
