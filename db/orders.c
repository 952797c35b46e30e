/* Inserting an order with its item, and finding it again by its Idempotency-Key. */
#include "db/orders.h"

#include "db/statements.h"

#include <stdio.h>
#include <stdlib.h>
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

static const struct statement ST_CLAIM_KEY = {
    "order_claim_key",
    "SELECT pg_try_advisory_xact_lock(hashtextextended('idempotency:' || $1::text, 0)),"
    "       o.id, o.amount, o.status, " RFC3339(
        "o.created_at") ", i.product_id, i.purchase_num, i.stock_seen,"
                        "       i.strategy, i.product_id = $2 AND i.purchase_num = $3 AND o.receiver_name IS NOT DISTINCT FROM $4"
                        "                   AND o.receiver_mobile IS NOT DISTINCT FROM $5 "
                        "FROM (SELECT 1) AS always LEFT JOIN orders o ON o.idempotency_key = $1::text"
                        "                          LEFT JOIN order_item i ON i.order_id = o.id",
    5};

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

static void copy(char *to, size_t size, const PGresult *result, int column)
{
    snprintf(to, size, "%s", PQgetvalue(result, 0, column));
}

static int64_t number(const PGresult *result, int column)
{
    return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

/* The columns id, amount, status, created_at from FIRST on. */
static void read_order(const PGresult *result, int first, struct order *ret_order)
{
    ret_order->id = number(result, first);
    copy(ret_order->amount, sizeof ret_order->amount, result, first + 1);
    copy(ret_order->status, sizeof ret_order->status, result, first + 2);
    copy(ret_order->created_at, sizeof ret_order->created_at, result, first + 3);
}

static void note_request(const struct order_request *request, const struct order_origin *origin, int64_t seen,
                         struct order *ret_order)
{
    ret_order->product_id = request->product_id;
    ret_order->quantity = request->quantity;
    ret_order->stock_seen = seen;
    snprintf(ret_order->strategy, sizeof ret_order->strategy, "%s", origin->strategy);
}

static const char *null_if_empty(const char *text)
{
    return text[0] ? text : NULL;
}

enum db_status orders_insert(struct db *db, const struct order_request *request,
                             const struct order_origin *origin, const struct stock_taken *taken,
                             struct order *ret_order)
{
    const char *const values[] = {
        DB_NUMBER(request->product_id),
        DB_NUMBER(request->quantity),
        taken->price,
        request->receiver_name,
        request->receiver_mobile,
        request->idempotency_key,
        origin->instance,
        taken->seen == STOCK_UNSEEN ? NULL : DB_NUMBER(taken->seen),
        origin->strategy,
        null_if_empty(taken->read_at),
        null_if_empty(taken->snapshot),
        taken->xid,
    };
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(db, &ST_INSERT_ORDER, values, &row);
    if (status != DB_OK)
        return status;
    read_order(row, 0, ret_order);
    copy(ret_order->xid, sizeof ret_order->xid, row, 4);
    note_request(request, origin, taken->seen, ret_order);
    return DB_OK;
}

enum db_status orders_claim_key(struct db *db, const struct order_request *request, enum key_claim *ret_claim,
                                struct order *ret_order)
{
    const char *const values[] = {request->idempotency_key, DB_NUMBER(request->product_id),
                                  DB_NUMBER(request->quantity), request->receiver_name,
                                  request->receiver_mobile};
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(db, &ST_CLAIM_KEY, values, &row);
    if (status != DB_OK)
        return status;

    bool ours = strcmp(PQgetvalue(row, 0, 0), "t") == 0;
    bool exists = !PQgetisnull(row, 0, 1);
    if (!exists) {
        *ret_claim = ours ? KEY_NEW : KEY_IN_PROGRESS;
        return DB_OK;
    }
    *ret_claim = strcmp(PQgetvalue(row, 0, 9), "t") == 0 ? KEY_REPLAY : KEY_MISMATCH;
    read_order(row, 1, ret_order);
    ret_order->product_id = number(row, 5);
    ret_order->quantity = number(row, 6);
    ret_order->stock_seen = PQgetisnull(row, 0, 7) ? STOCK_UNSEEN : number(row, 7);
    copy(ret_order->strategy, sizeof ret_order->strategy, row, 8);
    return DB_OK;
}

enum take_status orders_place_in_one(struct db *db, bool in_transaction, const struct order_request *request,
                                     const struct order_origin *origin, struct stock_taken *ret_taken,
                                     struct order *ret_order)
{
    const char *const values[] = {DB_NUMBER(request->product_id),
                                  DB_NUMBER(request->quantity),
                                  request->receiver_name,
                                  request->receiver_mobile,
                                  request->idempotency_key,
                                  origin->instance,
                                  origin->strategy};
    AUTO_RESULT row = NULL;
    enum db_status status = in_transaction ? db_run(db, &ST_PLACE_IN_ONE, values, &row)
                                           : db_run_once(db, &ST_PLACE_IN_ONE, values, &row);
    if (status != DB_OK) {
        ret_taken->db_status = status;
        return TAKE_FAILED;
    }
    if (PQntuples(row) == 0)
        return TAKE_NO_PRODUCT;
    if (PQgetisnull(row, 0, 0)) {
        copy(ret_taken->kind, sizeof ret_taken->kind, row, 6);
        if (strcmp(ret_taken->kind, "counter") != 0)
            return TAKE_WRONG_KIND;
        /* The row as this statement's snapshot has it. If it shows enough, another order took the rest while we
         * waited for the row: what is left now has to be read anew. */
        int64_t count = number(row, 5);
        ret_taken->available = count < request->quantity ? count : STOCK_UNSEEN;
        return TAKE_SOLD_OUT;
    }
    read_order(row, 0, ret_order);
    copy(ret_order->xid, sizeof ret_order->xid, row, 4);
    note_request(request, origin, STOCK_UNSEEN, ret_order);
    return TAKE_OK;
}
