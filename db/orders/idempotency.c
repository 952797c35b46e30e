/* Claiming Idempotency-Keys, and finding the orders that have them. */
#include "db/orders/orders_impl.h"

#include "db/postgres/array.h"
#include "db/postgres/statements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each key is looked up by itself, and the order's one item too: a join could be planned, while there are few orders, as a
 * scan of them all, and a prepared statement keeps its plan. */
static const struct statement ST_CLAIM_KEYS = {
    "orders_claim_keys",
    "SELECT o.id, o.amount, o.status, " RFC3339(
        "o.created_at") ","
                        "       pg_try_advisory_xact_lock(hashtextextended('idempotency:' || w.key, 0)),"
                        "       i.product_id, i.purchase_num, i.stock_seen, i.strategy,"
                        "       i.product_id = w.product_id AND i.purchase_num = w.quantity"
                        "       AND o.receiver_name IS NOT DISTINCT FROM w.name"
                        "       AND o.receiver_mobile IS NOT DISTINCT FROM w.mobile "
                        "FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[])"
                        "     WITH ORDINALITY AS w (key, product_id, quantity, name, mobile, place)"
                        "     LEFT JOIN LATERAL (SELECT * FROM orders WHERE idempotency_key = w.key LIMIT 1) AS o ON true"
                        "     LEFT JOIN LATERAL (SELECT * FROM order_item WHERE order_id = o.id LIMIT 1) AS i ON true "
                        "ORDER BY place",
    5};

static bool is_true(const PGresult *rows, int row, int column)
{
    return strcmp(PQgetvalue(rows, row, column), "t") == 0;
}

static void read_claim(const PGresult *rows, int row, struct order_draft *draft)
{
    struct order *order = draft->order;
    if (PQgetisnull(rows, row, 0)) {
        draft->claim = is_true(rows, row, 4) ? KEY_NEW : KEY_IN_PROGRESS;
        return;
    }
    draft->claim = is_true(rows, row, 9) ? KEY_REPLAY : KEY_MISMATCH;
    order_read(rows, row, 0, order);
    order->product_id = db_cell_number(rows, row, 5);
    order->quantity = db_cell_number(rows, row, 6);
    order->stock_seen = PQgetisnull(rows, row, 7) ? STOCK_UNSEEN : db_cell_number(rows, row, 7);
    snprintf(order->strategy, sizeof order->strategy, "%s", PQgetvalue(rows, row, 8));
}

enum db_status orders_claim_keys(struct db *db, struct order_draft *drafts, size_t count)
{
    enum { KEYS, PRODUCTS, QUANTITIES, NAMES, MOBILES, COLUMNS };
    struct array columns[COLUMNS];
    const char *values[COLUMNS];
    arrays_begin(columns, COLUMNS);
    for (size_t i = 0; i < count; i++) {
        const struct order_request *request = drafts[i].request;
        array_add(&columns[KEYS], request->idempotency_key);
        array_add_number(&columns[PRODUCTS], request->product_id);
        array_add_number(&columns[QUANTITIES], request->quantity);
        array_add(&columns[NAMES], request->receiver_name);
        array_add(&columns[MOBILES], request->receiver_mobile);
    }
    AUTO_RESULT rows = NULL;
    enum db_status status = arrays_end(columns, COLUMNS, values) ? db_run(db, &ST_CLAIM_KEYS, values, &rows)
                                                                 : DB_ERROR;
    arrays_free(columns, COLUMNS);
    if (status == DB_OK && (size_t)PQntuples(rows) != count)
        return DB_ERROR;
    for (size_t i = 0; status == DB_OK && i < count; i++)
        read_claim(rows, (int)i, &drafts[i]);
    return status;
}

enum db_status orders_claim_key(struct db *db, const struct order_request *request, enum key_claim *ret_claim,
                                struct order *ret_order)
{
    struct order_draft draft = {.request = request, .order = ret_order};
    enum db_status status = orders_claim_keys(db, &draft, 1);
    *ret_claim = draft.claim;
    return status;
}
