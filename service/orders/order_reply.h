/* The reply to an order: an HTTP status and JSON for each of the ways in which an order can end. */
#ifndef OVERSELL_SERVICE_ORDERS_ORDER_REPLY_H
#define OVERSELL_SERVICE_ORDERS_ORDER_REPLY_H

#include "service/engine/create_order.h"
#include "service/http/server.h"

/* Replies with the outcome of an order that the engine has placed, or has failed to place. The caller still owns PLACING. */
void order_reply(struct exchange *x, const struct placing *placing);

/* Replies to a request that placed no order (POST /echo). */
void order_reply_echo(struct exchange *x, const struct order_request *request);

/* Writes the order as JSON text to TO, in SIZE bytes; HTTP_ROOM is enough. */
void order_print(const struct order *order, char *to, size_t size);

#endif
