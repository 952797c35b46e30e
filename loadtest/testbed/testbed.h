/* Where a load test happens: services that it starts on a private stack, or services that are already
 * there. */
#ifndef OVERSELL_LOADTEST_TESTBED_TESTBED_H
#define OVERSELL_LOADTEST_TESTBED_TESTBED_H

#include "loadtest/cli/options.h"
#include "loadtest/client/service_client.h"
#include "loadtest/testbed/child.h"

#include <limits.h>

#define INSTANCES_MAX TEXTS_MAX

struct lab_settings {
    struct texts urls; /* services that are already there; none: start our own */
    int64_t instances; /* services to start; 0 is for those who need the stack alone */
    int64_t instances_default;
    bool database;          /* the stack needs the shop's database even where no service is started */
    const char *strategies; /* whose locks' servers the stack needs as well; NULL: none */
    int64_t workers;        /* of each of them; 0: the service's own default */
    int64_t product_limit;  /* orders of one product in the database at once; 0: any number */
    const char
        *servers; /* "private": a stack of our own; "environment": those that DATABASE_URL and its kin name */
};

#define LAB_DEFAULTS                                                                                         \
    {                                                                                                        \
        .instances = 1, .instances_default = 1, .servers = "private"                                         \
    }

extern const struct option_rows lab_options; /* fill a struct lab_settings */

struct lab {
    size_t count;
    size_t given; /* the first of them, which were there before */
    struct service_client *clients[INSTANCES_MAX];
    /* The rest is empty where the services were there before. */
    struct child services[INSTANCES_MAX];
    char dir[PATH_MAX]; /* logs, port files and the stack; removed by lab_close */
    bool own_stack;     /* there is a stack in DIR/stack */
    bool stack_is_up;   /* and it came up as it should */
};

/* Checks what can be checked before anything is started; says on stderr what is wrong. */
bool lab_settings_valid(const struct lab_settings *settings);
/* Starts what is needed and waits until every service is ready. If that fails it says why on stderr, with
 * the tail of the log that tells, and *ret_lab needs no closing. */
bool lab_open(const struct lab_settings *settings, struct lab *ret_lab);
/* All services that the lab started still run. If not it says which has died, with its log's tail. */
bool lab_alive(struct lab *lab);
/* Stops and removes all that lab_open has made, and nothing else. */
void lab_close(struct lab *lab);

/* The folder of the private stack, for `stack env --dir`; NULL if there is none. BUFFER of PATH_MAX bytes. */
const char *lab_stack_dir(const struct lab *lab, char *buffer);

/* What a service has written into its port file; false where it has not yet. */
bool lab_read_port(const char *path, int64_t *ret_port);

#endif
