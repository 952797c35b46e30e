/* The addresses at which other machines reach this service, and the one of them that learners get. */
#ifndef OVERSELL_SERVICE_CLASSROOM_ADDRESSES_H
#define OVERSELL_SERVICE_CLASSROOM_ADDRESSES_H

#include "service/config/config.h"

#include <jansson.h>

/* URLs for the address that CONFIG listens on and PORT, those of physical networks first: one of each interface where it
 * listens on all of them, none where it listens on the loopback interface only. The caller's to json_decref; NULL when out of
 * memory. Any thread. */
json_t *addresses_for_others(const struct config *config, unsigned port);

/* Does this process run in a container, as files and variables of Docker, Podman and Kubernetes tell? Then the addresses of its network
 * interfaces are the container's, which other machines rarely reach. Any thread. */
bool is_in_container(void);

/* Where the address for learners comes from. */
enum address_source {
    ADDRESS_OF_PAGE,      /* the teacher's page has it */
    ADDRESS_OF_INTERFACE, /* the page has a loopback address, so it is the one of a network interface */
    ADDRESS_OF_CONTAINER, /* none: the page has a loopback address, and the interfaces are a container's */
    ADDRESS_LOOPBACK,     /* none: the service listens on the loopback interface only */
};

/* How the browser of the teacher reached the page. */
struct page_address {
    const char *origin; /* what the page says of itself, as https://shop.example:8080; NULL if it does not */
    const char *host;   /* the Host header, or NULL */
    const char *scheme; /* the header X-Forwarded-Proto of a proxy, or NULL */
};

/* The URL for learners into RET_URL of SIZE bytes: that of the page, unless it is a loopback address or does not fit, else that of the
 * first network interface. "" for the last two sources. Any thread. */
enum address_source address_for_learners(const struct config *config, unsigned port,
                                         const struct page_address *page, bool in_container, char *ret_url,
                                         size_t size);

#endif
