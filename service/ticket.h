/* An order on its way through the service: from its request, through the gate, perhaps a line, to its answer. */
#ifndef OVERSELL_SERVICE_TICKET_H
#define OVERSELL_SERVICE_TICKET_H

#include "db/orders.h"
#include "service/service.h"

struct ticket;

/* Do orders under SETTINGS wait in a line for their turn at their product? */
bool ticket_lines_up(const struct settings *settings);

/* On an HTTP thread, X not suspended: the order gets in line, or to the workers if its turn is now; X is finished when
 * it is answered. False: it has to wait at the gate, or it needs no line after all; nothing has happened, and BODY is
 * the caller's still. BODY owns REQUEST's strings and is stolen. ASKED is the strategy, or NULL for the current one. */
bool ticket_line_up(struct exchange *x, const struct order_request *request, json_t *body,
                    const struct strategy *asked);

/* On a worker, X suspended: passes the gate, waiting if need be, and then the same; where its turn is now it is placed. */
void ticket_admit(struct exchange *x, struct worker *worker, const struct order_request *request,
                  json_t *body, const struct strategy *asked);

/* On a worker: places the orders that have the turn, whose first is x->work, and those that are in line behind them, as
 * long as nobody else wants the worker. */
void ticket_serve(struct ticket *first, struct worker *worker);

#endif
