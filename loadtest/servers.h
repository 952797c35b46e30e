/* Which servers of the private stack the locks of some strategies need. */
#ifndef OVERSELL_LOADTEST_SERVERS_H
#define OVERSELL_LOADTEST_SERVERS_H

#include <stddef.h>

enum { SERVERS_MAX = 8 };

/* The stack's names of what the strategies of LIST (names and groups) need beside PostgreSQL; returns how many. Names that
 * are no strategy's need nothing here. */
size_t servers_needed(const char *list, const char *ret_names[SERVERS_MAX]);

#endif
