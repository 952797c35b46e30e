/* Which servers of the private stack the locks of some strategies need. */
#ifndef OVERSELL_LOADTEST_TESTBED_SERVERS_H
#define OVERSELL_LOADTEST_TESTBED_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

enum { SERVERS_MAX = 8 };

/* The stack's names of what the locks of the strategies of LIST (names and groups; NULL: none) need, and PostgreSQL in front
 * where there is a SHOP; returns how many. Names that are no strategy's need nothing here. */
size_t servers_needed(bool shop, const char *list, const char *ret_names[SERVERS_MAX]);

#endif
