/* The addresses at which other machines reach this service. */
#ifndef OVERSELL_SERVICE_CLASSROOM_ADDRESSES_H
#define OVERSELL_SERVICE_CLASSROOM_ADDRESSES_H

#include "service/config/config.h"

#include <jansson.h>

/* URLs for the address that CONFIG listens on and PORT, those of physical networks first: one of each interface where it
 * listens on all of them, none where it listens on the loopback interface only. The caller's to json_decref; NULL when out of
 * memory. Any thread. */
json_t *addresses_for_others(const struct config *config, unsigned port);

#endif
