/* Starts a user's service, in one or more instances, with the private servers that it needs, and stops all of them. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_SERVICE_H
#define OVERSELL_LOADTEST_OWN_SHOP_SERVICE_H

#include "loadtest/own/shop_database.h"
#include "loadtest/process/adoption.h"
#include "loadtest/testbed/testbed.h"

/* ---- the servers ----- */

/* PostgreSQL and Redis of a description: the real ones, or private ones. One thread. */
struct shop_servers {
    struct testbed testbed; /* the private ones, and the folder for logs */
    const char *postgres;   /* their addresses; they live as long as the description and the servers */
    const char *redis;      /* NULL: the service needs none */
};

/* Starts the private servers that are needed, and loads "schema". False, having said why on stderr unless it was an interrupt;
 * then there is nothing to close. It ends within minutes. */
bool shop_servers_open(const struct shop_description *description, struct shop_servers *ret_servers);
/* Stops what was started, and removes its data. */
void shop_servers_close(struct shop_servers *servers);

/* ---- the service ----- */

struct shop_plan {
    const struct shop_description *description;
    const char *folder; /* for its output, in files: testbed.dir */
    const char *postgres,
        *redis; /* the addresses that the service is given: those of struct shop_servers, or of a proxy */
    size_t instances;        /* 1 to INSTANCES_MAX */
    const struct texts *env; /* more "NAME=value", which come after those of the description; NULL: none */
};

/* Its instances. All zero: none. If the description has no "start", there is one instance, which is not a process of ours. */
struct shop_service {
    const struct shop_description *description;
    size_t count;
    struct child process[INSTANCES_MAX];
    struct adoption adoption;    /* of what has left the process groups */
    int64_t port[INSTANCES_MAX]; /* -1: the description does not say */
    char log[INSTANCES_MAX][PATH_MAX + 32];
    bool struck; /* it has lost a connection on purpose; set by the caller, for the message if it ends */
};

/* ENV, the words of --env, are "NAME=value", and need "start". False, having said so on stderr. */
bool shop_can_have_env(const struct shop_description *description, const struct texts *env);
/* More than one instance needs "start", and {port} in the URL of the request. False, having said so on stderr. */
bool shop_can_have_instances(const struct shop_description *description, size_t instances);
/* Starts all instances, each in its own process group on a free port of 127.0.0.1, and waits until they are ready, for
 * start_timeout_ms at most. False, having said why on stderr with the end of the output, unless it was an interrupt; then nothing
 * runs. */
bool shop_service_start(const struct shop_plan *plan, struct shop_service *ret_service);
/* Do all instances run? If not, says on stderr which one ended, with the end of its output. It also cuts output that has become
 * longer than 16 MB, so call it now and then. */
bool shop_service_runs(struct shop_service *service);
/* Do all instances run? Says nothing. */
bool shop_service_is_alive(const struct shop_service *service);
/* SIGTERM, and after 5 s SIGKILL, to each process group, and then to what has left its group. When it returns, nothing that the service
 * has started runs. May be called twice. */
void shop_service_stop(struct shop_service *service);

/* Sets the stock and deletes the orders, as "reset" says: by its SQL in DATABASE, or by its request, in which {stock} is STOCK, to
 * each instance if its URL has {port} or {instance}. False, having said why on stderr unless it was an interrupt. */
bool shop_service_reset(const struct shop_service *service, struct shop_database *database, int64_t stock);
/* The same, and reads what there is then. False as well if there is nothing to sell. */
bool shop_service_restock(const struct shop_service *service, struct shop_database *database, int64_t stock,
                          struct shop_stock *ret_before);

/* The placeholders that instance I (from 0) gives a value. */
struct shop_values shop_values_of(const struct shop_service *service, size_t i);

#endif
