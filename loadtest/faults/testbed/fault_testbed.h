/* The testbed of a fault run: a private stack, two services on it, proxies between them if the fault needs some, and a
 * session in the database for the checker. One thread. */
#ifndef OVERSELL_LOADTEST_FAULTS_TESTBED_FAULT_TESTBED_H
#define OVERSELL_LOADTEST_FAULTS_TESTBED_FAULT_TESTBED_H

#include "db/postgres/connection.h"
#include "loadtest/faults/testbed/clients.h"
#include "loadtest/faults/testbed/proxy.h"
#include "loadtest/testbed/servers.h"
#include "loadtest/testbed/testbed.h"

/* What a proxy can stand before: the stack's servers (enum stack_server), and the services. */
enum { BACKEND_HTTP = STACK_SERVERS, BACKENDS };
enum { BEFORE_NONE = 0, BEFORE_ALL = (1 << BACKENDS) - 1, SERVERS_OF_A_KIND = 5 };

/* How the services are started. Times in ms. */
struct fault_testbed_plan {
    int64_t ttl_ms, wait_ms, order_ms;
    unsigned proxied; /* 1 << BACKEND, or-ed: reached through a proxy, by both services */
    bool proxied_one; /* by the first service alone */
    bool clocks;      /* each has a clock that fault_clock_set sets */
};

struct fault_testbed {
    struct testbed base; /* its services and clients are past the proxies */
    struct fault_testbed_plan plan;
    char urls[FAULT_INSTANCES][64];                     /* what clients are told */
    struct proxy *proxies[BACKENDS][SERVERS_OF_A_KIND]; /* NULL: none */
    char *proxied_addresses[STACK_SERVERS];             /* NULL: as they are */
    struct db *db;
};

/* Brings the servers up that the strategies of LIST need. False, having said why; then there is nothing to close. */
bool fault_testbed_open(const char *list, struct fault_testbed *ret_testbed);
void fault_testbed_close(struct fault_testbed *testbed);

/* Starts or restarts both services as PLAN says, with the proxies that PLAN asks for. False on a failure, with a message on stderr. */
bool fault_testbed_arrange(struct fault_testbed *testbed, const struct fault_testbed_plan *plan);
/* Starts a service that has ended, at its old port, and waits until it is ready. False, having said why. */
bool fault_service_start(struct fault_testbed *testbed, int i);
/* The same for those that have ended. */
bool fault_services_restart(struct fault_testbed *testbed);
/* Kills it and waits for its end. */
void fault_service_kill(struct fault_testbed *testbed, int i);
/* Orders of a service think for so long, under every strategy. False, having said why. */
bool fault_service_set_think(struct fault_testbed *testbed, int i, int64_t think_ms);

/* Sets by how many seconds the clock of "service-1", "redis", … is wrong from now on, where it was started with one that can be set.
 * (loadtest/faults/nemesis/clock.c) */
bool fault_clock_set(struct fault_testbed *testbed, const char *name, int64_t seconds);

/* All rules of all proxies, or of those before one backend. */
void fault_proxies_set(struct fault_testbed *testbed, unsigned before, const struct proxy_rules *rules);
void fault_proxies_cut(struct fault_testbed *testbed, unsigned before);
/* The backends whose proxies have connections now, and those whose rules have acted since they were arranged: 1 << BACKEND,
 * or-ed. */
unsigned fault_proxies_carrying(const struct fault_testbed *testbed);
unsigned fault_proxies_acted(const struct fault_testbed *testbed);

/* stack_run for the servers named ("redis", "postgres", …), with more for their environment (NULL: none). */
bool fault_servers_up(struct fault_testbed *testbed, const char *const *names, const char *const *env);
bool fault_servers_down(struct fault_testbed *testbed, const char *const *names);
/* As fault_servers_up for PostgreSQL; *ret_ready_us is when it first took a session. */
bool fault_postgres_up(struct fault_testbed *testbed, const char *const *env, int64_t *ret_ready_us);
/* The time at which PostgreSQL accepts sessions; 0 if it does not come back. */
int64_t fault_postgres_await(struct fault_testbed *testbed);
/* Sends a signal to a server's main process; false if the server does not run. */
bool fault_server_signal(struct fault_testbed *testbed, const char *name, int signal_number);

/* Opens a session in the shop's database until a deadline from now. NULL on a failure, with a message on stderr. */
struct db *fault_db(struct fault_testbed *testbed);

#endif
