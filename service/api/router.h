/* Routes: which handler serves a method and path, on which threads, and for which callers. */
#ifndef OVERSELL_SERVICE_API_ROUTER_H
#define OVERSELL_SERVICE_API_ROUTER_H

#include "service/api/access.h"

struct route {
    const char *method;
    const char *path; /* one segment may be ":", which matches anything and becomes exchange.argument */
    enum lane lane;
    enum access access; /* who may make the call */
    void (*handle)(struct exchange *x,
                   struct worker *worker); /* WORKER is NULL on LANE_HTTP and LANE_ORDERS */
};

enum routing { ROUTED, NO_SUCH_PATH, NO_SUCH_METHOD };

/* Finds the route in TABLE (ended by one without a method). NO_SUCH_METHOD: *ret_allow lists those that the path
 * takes, in ALLOW_SIZE bytes. HEAD is taken where GET is. */
enum routing route_find(const struct route *table, const char *method, const char *path,
                        const struct route **ret_route, char *ret_argument, size_t argument_size,
                        char *ret_allow, size_t allow_size);

extern const struct route routes[];

#endif
