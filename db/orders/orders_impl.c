/* What the ways of inserting and finding orders share: reading an order from a row. */
#include "db/orders/orders_impl.h"

#include <stdio.h>

static void copy(char *to, size_t size, const PGresult *result, int row, int column)
{
    snprintf(to, size, "%s", PQgetvalue(result, row, column));
}

void order_read(const PGresult *result, int row, int first, struct order *ret_order)
{
    ret_order->id = db_cell_number(result, row, first);
    copy(ret_order->amount, sizeof ret_order->amount, result, row, first + 1);
    copy(ret_order->status, sizeof ret_order->status, result, row, first + 2);
    copy(ret_order->created_at, sizeof ret_order->created_at, result, row, first + 3);
}

void order_inserted(const PGresult *result, int row, const struct order_request *request,
                    const struct order_origin *origin, int64_t seen, struct order *ret_order)
{
    order_read(result, row, 0, ret_order);
    copy(ret_order->xid, sizeof ret_order->xid, result, row, 4);
    order_known(request, origin, seen, ret_order);
}

void order_known(const struct order_request *request, const struct order_origin *origin, int64_t seen,
                 struct order *ret_order)
{
    ret_order->product_id = request->product_id;
    ret_order->quantity = request->quantity;
    ret_order->stock_seen = seen;
    snprintf(ret_order->strategy, sizeof ret_order->strategy, "%s", origin->strategy);
}
