/* Repeats an Idempotency-Key as clients do, and checks the answers. One thread at a time. */
#ifndef OVERSELL_LOADTEST_CLIENT_KEY_PROBE_H
#define OVERSELL_LOADTEST_CLIENT_KEY_PROBE_H

#include "loadtest/client/service_client.h"

/* Nothing else orders these products meanwhile; their stock is changed, and the orders of PRODUCT are deleted. */
struct key_probe {
    const char *strategy; /* NULL: the current one */
    const char *kind;     /* of stock */
    int64_t product, other;
    const char *key; /* of no order so far */
};

enum { KEY_FINDING = 160 };

/* Orders PRODUCT with the key, again, then OTHER with the same key (which is refused), and PRODUCT after a reset (which is a new order). On a wrong
 * answer RET_FINDING says which, as a sentence without a full stop; else it is "", also if the first order was refused. False: a call got no
 * answer or a reset failed, as service_client_error says. */
bool key_probe(struct service_client *client, const struct key_probe *probe,
               char ret_finding[static KEY_FINDING]);

#endif
