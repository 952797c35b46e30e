/* A user's service and its database: started where the description says how, reset, and asked what was sold. One thread. */
#ifndef OVERSELL_LOADTEST_OWN_SHOP_SERVICE_H
#define OVERSELL_LOADTEST_OWN_SHOP_SERVICE_H

#include "loadtest/own/description.h"
#include "loadtest/testbed/testbed.h"

enum { SHOP_INSTANCES_MAX = 8, SHOP_PLACEHOLDERS = 8 };

struct shop_settings {
    int64_t instances; /* to start; 1 for a service that runs already */
    struct texts env;  /* "NAME=value" of the instances, in place of the description's */
    int64_t start_ms;  /* how long an instance may take until it is ready */
};

struct shop_service {
    const struct description *description;
    struct testbed testbed; /* the private servers and the folder of the logs */
    size_t count;
    struct child instances[SHOP_INSTANCES_MAX];
    char ports[SHOP_INSTANCES_MAX][8]; /* "" for a service that runs already */
    struct db *db;
};

/* Starts the private servers, loads the schema, starts the instances, and waits until they are ready. False, having said why on
 * stderr, with the end of an instance's output if that tells; then nothing is left running and there is nothing to close. */
bool shop_service_open(const struct description *description, const struct shop_settings *settings,
                       struct shop_service *ret_service);
/* Stops all that was started. */
void shop_service_close(struct shop_service *service);

/* The instances still run. If not it says which has ended, with the end of its output. */
bool shop_service_alive(struct shop_service *service);

/* The values of all placeholders for request NUMBER, which goes to one instance after the other. NUMBER_TEXT, of 24 bytes, gets the
 * number as text. VALUES point into SERVICE and NUMBER_TEXT. Any thread. */
void shop_service_values(const struct shop_service *service, int64_t number, char *number_text,
                         struct placeholder ret_values[SHOP_PLACEHOLDERS]);

/* Sets the stock, and deletes the orders, as the description says. False, having said why on stderr. */
bool shop_service_reset(struct shop_service *service, int64_t stock);
/* The number that the SQL statement returns. NAME: the member of the description that it is, for messages. False, having said why. */
bool shop_service_number(struct shop_service *service, const char *name, const char *sql,
                         int64_t *ret_number);
/* The same for one that returns a truth value. */
bool shop_service_holds(struct shop_service *service, const char *sql, bool *ret_holds);

#endif
