/* The testbed of a load test: services that it starts on a private stack of servers, or services that run already. One
 * thread. */
#ifndef OVERSELL_LOADTEST_TESTBED_TESTBED_H
#define OVERSELL_LOADTEST_TESTBED_TESTBED_H

#include "loadtest/cli/options.h"
#include "loadtest/client/service_client.h"
#include "loadtest/process/child.h"
#include "lock/config.h"

#include <limits.h>

#define INSTANCES_MAX TEXTS_MAX

struct testbed_settings {
    struct texts urls; /* services that are already there; none: start our own */
    int64_t instances; /* services to start; 0: the stack alone */
    int64_t instances_default;
    bool database;          /* the stack needs the shop's database even where no service is started */
    const char *strategies; /* whose locks' servers the stack needs as well; NULL: none */
    int64_t workers;        /* of each of them; 0: the service's own default */
    int64_t product_limit;  /* orders of one product in the database at once; 0: any number */
    /* "private": a stack of our own; "environment": those that DATABASE_URL and its kin name */
    const char *servers;
};

#define TESTBED_DEFAULTS                                                                                     \
    {                                                                                                        \
        .instances = 1, .instances_default = 1, .servers = "private"                                         \
    }

extern const struct option_rows testbed_options; /* fill a struct testbed_settings */

struct testbed {
    size_t count;
    size_t given; /* the first of them, which were there before */
    struct service_client *clients[INSTANCES_MAX];
    /* The rest is empty where the services were there before. */
    struct child services[INSTANCES_MAX];
    int64_t ports[INSTANCES_MAX]; /* 0: not started yet. A service that is started again keeps its port. */
    char dir[PATH_MAX];           /* logs, port files and the stack; removed by testbed_close */
    char stack_dir[PATH_MAX];     /* the private stack's folder in DIR; "": there is no private stack */
    bool stack_is_up;             /* and it came up as it should */
    struct lock_config addresses; /* of the private stack's servers; the strings are never freed */
};

/* Checks what can be checked before anything is started; says on stderr what is wrong. */
bool testbed_settings_valid(const struct testbed_settings *settings);
/* Starts what is needed and waits until every service is ready. If that fails it says why on stderr, with
 * the tail of the log that tells, and *ret_testbed needs no closing. */
bool testbed_open(const struct testbed_settings *settings, struct testbed *ret_testbed);
/* All services that the testbed started still run. If not it says which has died, with its log's tail. */
bool testbed_alive(struct testbed *testbed);
/* Says so if the disk of the testbed's folder is full: asked where a run failed, since each server names another cause. */
void testbed_explain_full_disk(const struct testbed *testbed);
/* Stops and removes all that testbed_open has made, and nothing else. */
void testbed_close(struct testbed *testbed);

/* How a service is started. */
struct service_plan {
    const char *const *words; /* of its command line, after those that every service gets; ended by NULL */
    const char *const *env;   /* "NAME=value" added to its environment; ended by NULL; NULL: nothing */
    const struct lock_config *addresses; /* of its servers; NULL: those in our environment */
    int death_signal;                    /* the signal that it gets if this process is killed */
};

/* Starts service I, the first of them 0, which does not run. False, having said why on stderr. */
bool testbed_start_service(struct testbed *testbed, size_t i, const struct service_plan *plan);
/* Waits until service I listens and is ready, and connects its client. False, having said why on stderr, with the tail of
 * its log, unless it was an interrupt. */
bool testbed_await_service(struct testbed *testbed, size_t i);
/* Sends SIGTERM to all services at once, also to those that are stopped by SIGSTOP, and waits for their ends. */
void testbed_stop_services(struct testbed *testbed);

#endif
