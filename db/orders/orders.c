/* Inserting an order with its item: at the end of a transaction, or as the whole of it. */
#include "db/orders/orders_impl.h"

#include "base/observer.h"
#include "db/postgres/statements.h"

#include <stdio.h>
#include <string.h>

const struct statement ST_INSERT_ORDER = {
    "order_insert",
    "WITH o AS ("
    "  INSERT INTO orders (amount, receiver_name, receiver_mobile, idempotency_key, created_by, updated_by)"
    "  VALUES ($3::numeric * $2::bigint, $4, $5, $6, $7, $7) RETURNING id, amount, status, created_at"
    "), i AS ("
    "  INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, stock_seen, strategy, instance,"
    "                          read_at, read_snapshot, stock_xid, created_by, updated_by)"
    "  SELECT id, $1::bigint, $3::numeric, $2::bigint, $8, $9, $7,"
    "         $10::timestamptz, $11::pg_snapshot, $12::xid8, $7, $7 FROM o"
    ") SELECT id, amount, status, " RFC3339("created_at") ", pg_current_xact_id() FROM o",
    12};

/* The last line looks at the product's row even if nothing was taken, so that one round trip also tells a
 * sold-out product from a missing one. */
const struct statement ST_PLACE_IN_ONE = {
    "order_place_in_one",
    "WITH taken AS ("
    "  UPDATE product SET count = count - $2::bigint, version = version + 1, refuse_negative = false,"
    "                     updated_at = clock_timestamp(), updated_by = $6"
    "  WHERE id = $1::bigint AND count >= $2::bigint AND stock_kind = 'counter' RETURNING id, price"
    "), o AS ("
    "  INSERT INTO orders (amount, receiver_name, receiver_mobile, idempotency_key, created_by, updated_by)"
    "  SELECT price * $2::bigint, $3, $4, $5, $6, $6 FROM taken"
    "  RETURNING id, amount, status, created_at, pg_current_xact_id() AS xid"
    "), i AS ("
    "  INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid,"
    "                          created_by, updated_by)"
    "  SELECT o.id, taken.id, price, $2::bigint, $7, $6, o.xid, $6, $6 FROM o, taken"
    ") SELECT o.id, o.amount, o.status, " RFC3339(
        "o.created_at") ", o.xid, p.count, p.stock_kind "
                        "FROM product p LEFT JOIN o ON true WHERE p.id = $1::bigint",
    7};

static const char *null_if_empty(const char *text)
{
    return text[0] ? text : NULL;
}

/* The parameters of ST_INSERT_ORDER, valid to the end of the enclosing block. */
#define INSERT_VALUES(request, origin, taken)                                                                \
    {                                                                                                        \
        DB_NUMBER((request)->product_id), DB_NUMBER((request)->quantity), (taken)->price,                    \
            (request)->receiver_name, (request)->receiver_mobile, (request)->idempotency_key,                \
            (origin)->instance, (taken)->seen == STOCK_UNSEEN ? NULL : DB_NUMBER((taken)->seen),             \
            (origin)->strategy, null_if_empty((taken)->read_at), null_if_empty((taken)->snapshot),           \
            (taken)->xid                                                                                     \
    }

enum db_status orders_insert(struct db *db, const struct order_request *request,
                             const struct order_origin *origin, const struct stock_taken *taken,
                             struct order *ret_order)
{
    const char *const values[] = INSERT_VALUES(request, origin, taken);
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(db, &ST_INSERT_ORDER, values, &row);
    if (status != DB_OK)
        return status;
    order_inserted(row, 0, request, origin, taken->seen, ret_order);
    return DB_OK;
}

static void note_inserted(void *context, const PGresult *row)
{
    struct insert_later *insert = context;
    order_inserted(row, 0, insert->request, &insert->origin, insert->seen, insert->order);
    report_step(insert->observer, STEP_INSERT, STEP_NO_VALUE);
}

enum db_status orders_insert_later(struct db *db, const struct stock_taken *taken,
                                   struct insert_later *insert)
{
    const char *const values[] = INSERT_VALUES(insert->request, &insert->origin, taken);
    insert->seen = taken->seen;
    return db_run_later(db, &ST_INSERT_ORDER, values, note_inserted, insert);
}

enum take_status order_placed(const PGresult *row, const struct order_request *request,
                              const struct order_origin *origin, struct stock_taken *ret_taken,
                              struct order *ret_order)
{
    if (PQntuples(row) == 0)
        return TAKE_NO_PRODUCT;
    if (PQgetisnull(row, 0, 0)) {
        snprintf(ret_taken->kind, sizeof ret_taken->kind, "%s", PQgetvalue(row, 0, 6));
        if (strcmp(ret_taken->kind, "counter") != 0)
            return TAKE_WRONG_KIND;
        /* The row as this statement's snapshot has it. If it shows enough, another order took the rest while we
         * waited for the row: what is left now has to be read again. */
        int64_t count = db_cell_number(row, 0, 5);
        ret_taken->available = count < request->quantity ? count : STOCK_UNSEEN;
        return TAKE_SOLD_OUT;
    }
    order_inserted(row, 0, request, origin, STOCK_UNSEEN, ret_order);
    return TAKE_OK;
}

enum take_status orders_place_in_one(struct db *db, bool in_transaction, const struct order_request *request,
                                     const struct order_origin *origin, struct stock_taken *ret_taken,
                                     struct order *ret_order)
{
    const char *const values[] = PLACE_IN_ONE_VALUES(request, origin);
    AUTO_RESULT row = NULL;
    enum db_status status = in_transaction ? db_run(db, &ST_PLACE_IN_ONE, values, &row)
                                           : db_run_once(db, &ST_PLACE_IN_ONE, values, &row);
    if (status != DB_OK) {
        ret_taken->db_status = status;
        return TAKE_FAILED;
    }
    return order_placed(row, request, origin, ret_taken, ret_order);
}
