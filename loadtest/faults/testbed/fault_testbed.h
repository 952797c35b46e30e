/* The testbed of a fault run: a private stack, two services on it, proxies between them if the fault needs some, and a
 * session in the database for the checker. For one thread. Functions that return false have written the reason to stderr. */
#ifndef OVERSELL_LOADTEST_FAULTS_TESTBED_FAULT_TESTBED_H
#define OVERSELL_LOADTEST_FAULTS_TESTBED_FAULT_TESTBED_H

#include "db/postgres/connection.h"
#include "loadtest/faults/testbed/clients.h"
#include "loadtest/faults/testbed/proxy.h"
#include "loadtest/faults/testbed/shim.h"
#include "loadtest/testbed/servers.h"
#include "loadtest/testbed/testbed.h"

/* Backends, each of which can have proxies before it: the stack's servers (enum stack_server), and the services. */
enum { BACKEND_HTTP = STACK_SERVERS, BACKENDS };
enum { BEFORE_NONE = 0, BEFORE_ALL = (1 << BACKENDS) - 1, SERVERS_OF_A_KIND = 5 };

/* How the services are started. Times in ms: of a lease, of the wait for a lock, of a whole order. */
struct fault_testbed_plan {
    int64_t ttl_ms, wait_ms, order_ms;
    unsigned proxied; /* 1 << BACKEND, or-ed: the services reach these through proxies */
    bool proxied_one; /* only the first service does */
    bool clocks;      /* each service has its own clock, which fault_clock_set sets */
};

struct fault_testbed {
    struct testbed base; /* its clients reach the services without proxies */
    struct fault_testbed_plan plan;
    char urls[FAULT_INSTANCES][64];                     /* for the clients of the fault run */
    struct proxy *proxies[BACKENDS][SERVERS_OF_A_KIND]; /* NULL: none */
    char *proxied_addresses[STACK_SERVERS];             /* NULL: the server has no proxy */
    struct db *db;
};

/* Starts the servers that the strategies of LIST need. On false there is nothing to close. */
bool fault_testbed_open(const char *list, struct fault_testbed *ret_testbed);
void fault_testbed_close(struct fault_testbed *testbed);

/* Starts or restarts both services as PLAN says, with the proxies that PLAN asks for. */
bool fault_testbed_arrange(struct fault_testbed *testbed, const struct fault_testbed_plan *plan);
/* Starts a service that has ended, at its old port, and waits until it is ready. */
bool fault_service_start(struct fault_testbed *testbed, int i);
/* Kills a service, and waits for its end. */
void fault_service_kill(struct fault_testbed *testbed, int i);
/* Sets by how many seconds the clock of "service-1", "redis", … is wrong. It must have been started with clock_shim. */
bool fault_clock_set(struct fault_testbed *testbed, const char *name, int64_t seconds);

/* Sets the rules of the proxies before the backends in BEFORE (1 << BACKEND, or-ed), or resets their connections. */
void fault_proxies_set(struct fault_testbed *testbed, unsigned before, const struct proxy_rules *rules);
void fault_proxies_cut(struct fault_testbed *testbed, unsigned before);
/* The backends whose proxies have connections now, and those whose proxies' rules have acted since fault_testbed_arrange. */
unsigned fault_proxies_carrying(const struct fault_testbed *testbed);
unsigned fault_proxies_acted(const struct fault_testbed *testbed);

/* Starts or stops servers by their names ("redis", "postgres", …), with further variables in their environment (NULL: none). */
bool fault_servers_up(struct fault_testbed *testbed, const char *const *names, const char *const *env);
bool fault_servers_down(struct fault_testbed *testbed, const char *const *names);
/* As fault_servers_up for PostgreSQL; *RET_READY_US is when it first accepted a session. */
bool fault_postgres_up(struct fault_testbed *testbed, const char *const *env, int64_t *ret_ready_us);
/* Waits until PostgreSQL accepts sessions, and returns when that was; 0: it does not. */
int64_t fault_postgres_await(struct fault_testbed *testbed);
/* Sends a signal to a server's main process; false if the server does not run. */
bool fault_server_signal(struct fault_testbed *testbed, const char *name, int signal_number);

/* The session in the services' database, connected again if needed. NULL on a failure, with a message on stderr. */
struct db *fault_db(struct fault_testbed *testbed);
/* Runs a statement in that session. The caller clears the result; NULL on a failure, with a message on stderr. */
PGresult *fault_ask(struct fault_testbed *testbed, const struct statement *statement,
                    const char *const *values);

#endif
