/* Where the servers of the private stack are, and why those that are missing are. */
#ifndef OVERSELL_LOADTEST_TESTBED_ADDRESSES_H
#define OVERSELL_LOADTEST_TESTBED_ADDRESSES_H

#include "loadtest/testbed/testbed.h"
#include "lock/registry.h"

/* Asks the stack of LAB; "" for each server that is not up. The strings are never freed: the locks' threads may look for
 * a server until this process ends. False, having said why on stderr unless it was an interrupt. */
bool addresses_read(const struct lab *lab, struct lock_config *ret_addresses);

/* Is the lock's server up? If not, RET_REASON, a buffer of SIZE bytes, says why, in the stack's own words if it has any. */
bool address_known(struct lock_config *addresses, const struct lab *lab, const struct lock_server *server,
                   char *ret_reason, size_t size);

#endif
