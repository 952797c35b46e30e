/* The kinds of server that the private stack can start: which strategies need them, where they are, and why one is missing. */
#ifndef OVERSELL_LOADTEST_TESTBED_SERVERS_H
#define OVERSELL_LOADTEST_TESTBED_SERVERS_H

#include "loadtest/testbed/testbed.h"
#include "lock/registry.h"

enum stack_server {
    SERVER_POSTGRES,
    SERVER_REDIS,
    SERVER_REDLOCK,
    SERVER_ZOOKEEPER,
    SERVER_ETCD,
    STACK_SERVERS
};

/* The stack's names of the servers that the locks of the strategies of LIST (names and groups; NULL: none) need, and PostgreSQL
 * first if SHOP. Returns how many. Names that are no strategy's need no server. */
size_t servers_needed(bool shop, const char *list, const char *ret_names[STACK_SERVERS]);

/* Asks the stack of TESTBED; "" for each server that is not up. The strings are never freed: the locks' threads may look for
 * a server until this process ends. False, having said why on stderr unless it was an interrupt. */
bool servers_read_addresses(const struct testbed *testbed, struct lock_config *ret_addresses);
/* The member of CONFIG that has the server's address. */
const char **server_address(struct lock_config *config, enum stack_server server);
/* The environment variable by which a service finds the server. */
const char *server_variable(enum stack_server server);

/* Is the lock's server up? If not, RET_REASON, a buffer of SIZE bytes, says why, in the stack's own words if it has any. */
bool server_is_up(const struct testbed *testbed, const struct lock_server *server, char *ret_reason,
                  size_t size);

#endif
