/* An order that is accepted in Redis and not in PostgreSQL yet, as its client sees it. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_ACCEPTED_ORDER_H
#define OVERSELL_SERVICE_WRITE_BEHIND_ACCEPTED_ORDER_H

#include "db/orders/orders.h"
#include "service/write_behind/redis_stock.h"

extern const char accepted_status[];   /* the status of such an order: "accepted" */
extern const char accepted_strategy[]; /* the only strategy that accepts orders: "redis-stock" */

/* PRICE, a decimal with two digits after the point, times QUANTITY, exactly. False: PRICE is malformed, or the result does not
 * fit. */
bool accepted_amount(const char *price, int64_t quantity, char ret_amount[static 32]);

/* Makes the client's order from the entry FROM of the stream in Redis. */
void order_of_accepted(const struct accepted_order *from, struct order *ret_order);

/* Now, in RFC 3339 and UTC. */
void accepted_now(char ret_time[static 40]);

#endif
