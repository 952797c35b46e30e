/* Orders that are accepted and not in PostgreSQL yet, as their clients see them. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_ACCEPTED_H
#define OVERSELL_SERVICE_WRITE_BEHIND_ACCEPTED_H

#include "db/orders/orders.h"
#include "service/write_behind/redis_stock.h"

extern const char accepted_status[];   /* of an order: "accepted" */
extern const char accepted_strategy[]; /* that alone accepts orders: "redis-stock" */

/* PRICE, as PostgreSQL writes numeric(12,2), times QUANTITY, exactly; false where PRICE is none or the result too large. */
bool accepted_amount(const char *price, int64_t quantity, char ret_amount[static 32]);

/* The order as it lies in the stream. */
void accepted_order(const struct stream_order *from, struct order *ret_order);

/* Now, in RFC 3339 and UTC. */
void accepted_now(char ret_time[static 40]);

#endif
