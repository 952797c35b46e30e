/* Asks the servers that locks and stock need whether they answer, and remembers each answer for a second. */
#ifndef OVERSELL_SERVICE_API_LOCK_SERVERS_H
#define OVERSELL_SERVICE_API_LOCK_SERVERS_H

#include "lock/lock_driver.h"

/* Does the server answer? The answer may be up to a second old; a question takes up to a second. If not, RET_REASON (SIZE bytes)
 * says why. SERVER may be NULL: a lock in the process itself, which needs no server. Any thread. */
bool lock_server_is_up(const struct lock_server *server, char *ret_reason, size_t size);

/* Asks all servers at the same time. Then lock_server_is_up of each of them takes no time; without this call the questions
 * could take a second each. Any thread. */
void lock_servers_ask(void);

/* The I-th of the servers that the locks and the stock of the strategies need; NULL after the last one. Any thread. */
const struct lock_server *lock_server_at(size_t i);

#endif
