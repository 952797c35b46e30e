/* Repeats an Idempotency-Key as clients do, and checks the answers. */
#include "loadtest/client/key_probe.h"

#include <stdio.h>

enum { STOCK = 9 };

static bool order(struct service_client *client, const struct key_probe *probe, int64_t product,
                  struct keyed_order *ret_order)
{
    return service_client_order_again(client, probe->strategy, product, 1, probe->key, ret_order);
}

bool key_probe(struct service_client *client, const struct key_probe *probe,
               char ret_finding[static KEY_FINDING])
{
    struct keyed_order first, again, other, later;
    ret_finding[0] = 0;
    if (!service_client_reset(client, probe->product, STOCK, probe->kind) ||
        !service_client_reset(client, probe->other, STOCK, probe->kind) ||
        !order(client, probe, probe->product, &first))
        return false;
    if (first.id == 0)
        return true; /* other checks judge refusals */
    if (!order(client, probe, probe->product, &again) || !order(client, probe, probe->other, &other) ||
        !service_client_reset(client, probe->product, STOCK, probe->kind) ||
        !order(client, probe, probe->product, &later))
        return false;
    if (again.id != first.id)
        snprintf(ret_finding, KEY_FINDING,
                 "a repeated Idempotency-Key did not get the first order: the answer was %ld", again.status);
    else if (!other.mismatch)
        snprintf(ret_finding, KEY_FINDING,
                 "an Idempotency-Key of an order of another product was not refused: the answer was %ld",
                 other.status);
    else if (later.id == 0 || later.id == first.id)
        snprintf(ret_finding, KEY_FINDING,
                 "the Idempotency-Key of an order that a reset deleted gave no new order: the answer was %ld",
                 later.status);
    return true;
}
