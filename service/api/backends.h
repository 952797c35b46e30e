/* Which lock servers are there: asked seldom, told often. */
#ifndef OVERSELL_SERVICE_API_BACKENDS_H
#define OVERSELL_SERVICE_API_BACKENDS_H

#include "lock/lock.h"

/* Does the server answer? What was found within the last second is told again; else it is asked, for a second at most.
 * REASON (size bytes) says why not. SERVER may be NULL: the process itself, which is there. Any thread may call. */
bool backend_up(const struct lock_server *server, char *ret_reason, size_t size);

/* Asks all servers at once, so that who then wants to know about each waits for a second in all, not for each. Any thread
 * may call. */
void backends_ask(void);

/* The I-th of the servers that the strategies' locks and stock live on; NULL behind the last. */
const struct lock_server *backend_at(size_t i);

#endif
