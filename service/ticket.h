/* An order on its way through the service: from its request, through the gate, perhaps a line, to its answer. */
#ifndef OVERSELL_SERVICE_TICKET_H
#define OVERSELL_SERVICE_TICKET_H

#include "db/orders.h"
#include "service/service.h"

/* Takes the order in: it is placed at once, or by another worker once its turn has come, and x is finished (http_finish)
 * when it is answered. BODY owns REQUEST's strings and is stolen. ASKED is the strategy, or NULL for the current one. */
void ticket_admit(struct exchange *x, struct worker *worker, const struct order_request *request,
                  json_t *body, const struct strategy *asked);

#endif
