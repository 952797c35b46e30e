/* What the ways of inserting and finding orders share: reading an order from a row. */
#ifndef OVERSELL_DB_ORDERS_ORDERS_IMPL_H
#define OVERSELL_DB_ORDERS_ORDERS_IMPL_H

#include "db/orders/orders.h"

/* The columns id, amount, status, created_at from FIRST on. */
void order_read(const PGresult *result, int row, int first, struct order *ret_order);

/* The same columns and, as the fifth, the transaction: the answer to an INSERT for the REQUEST, which saw SEEN. */
void order_inserted(const PGresult *result, int row, const struct order_request *request,
                    const struct order_origin *origin, int64_t seen, struct order *ret_order);

#endif
