/* Where faults are made: a private stack, two services on it, proxies between them where a fault wants some, and a
 * session in the shop's database to judge by. One thread. */
#ifndef OVERSELL_LOADTEST_FAULTS_SITE_SITE_H
#define OVERSELL_LOADTEST_FAULTS_SITE_SITE_H

#include "db/postgres/connection.h"
#include "loadtest/faults/site/clients.h"
#include "loadtest/faults/site/proxy.h"
#include "loadtest/testbed/servers.h"
#include "loadtest/testbed/testbed.h"

/* What a proxy can stand before: the stack's servers (enum stack_server), and the services. */
enum { BACKEND_HTTP = STACK_SERVERS, BACKENDS };
enum { BEFORE_NONE = 0, BEFORE_ALL = (1 << BACKENDS) - 1, SERVERS_OF_A_KIND = 5 };

/* How the services are started. Times in ms. */
struct site_plan {
    int64_t ttl_ms, wait_ms, order_ms;
    unsigned proxied; /* 1 << BACKEND, or-ed: reached through a proxy, by both services */
    bool proxied_one; /* by the first service alone */
    bool clocks;      /* each has a clock that site_set_clock sets */
};

struct site {
    struct testbed base; /* its services and clients are past the proxies */
    struct site_plan plan;
    char urls[FAULT_INSTANCES][64];                     /* what clients are told */
    struct proxy *proxies[BACKENDS][SERVERS_OF_A_KIND]; /* NULL: none */
    char *proxied_addresses[STACK_SERVERS];             /* NULL: as they are */
    struct db *db;
};

/* Brings the servers up that the strategies of LIST need. False, having said why; then there is nothing to close. */
bool site_open(const char *list, struct site *ret_site);
void site_close(struct site *site);

/* Starts, or starts anew, both services as PLAN says, with the proxies that it wants. False, having said why. */
bool site_arrange(struct site *site, const struct site_plan *plan);
/* Starts a service that has ended, at its old port, and waits until it is ready. False, having said why. */
bool site_start_service(struct site *site, int i);
/* The same for those that have ended. */
bool site_mend_services(struct site *site);
/* Kills it and waits for its end. */
void site_kill_service(struct site *site, int i);
/* Orders of a service think for so long, under every strategy. False, having said why. */
bool site_set(struct site *site, int i, int64_t think_ms);

/* By how many seconds the clock of "service-1", "redis", … is wrong from now on, where it was started with one that can be set.
 * (loadtest/faults/nemesis/clock.c) */
bool site_set_clock(struct site *site, const char *name, int64_t seconds);

/* All rules of all proxies, or of those before one backend. */
void site_set_proxies(struct site *site, unsigned before, const struct proxy_rules *rules);
void site_cut_proxies(struct site *site, unsigned before);
/* The backends whose proxies have connections now, and those whose rules have acted since they were arranged: 1 << BACKEND,
 * or-ed. */
unsigned site_carrying(const struct site *site);
unsigned site_acted(const struct site *site);

/* stack_run for the servers named ("redis", "postgres", …), with more for their environment (NULL: none). */
bool site_up(struct site *site, const char *const *names, const char *const *env);
bool site_down(struct site *site, const char *const *names);
/* As site_up for PostgreSQL; *ret_ready_us is when it first took a session. */
bool site_up_postgres(struct site *site, const char *const *env, int64_t *ret_ready_us);
/* When PostgreSQL takes sessions; 0 where it does not come back. */
int64_t site_await_postgres(struct site *site);
/* Sends a signal to a server's main process; false where it does not run. */
bool site_signal(struct site *site, const char *name, int signal_number);

/* A session in the shop's database, with a deadline from now; NULL, having said why, where there is none by then. */
struct db *site_db(struct site *site);

#endif
