/* Many orders of one product in one transaction: their rows travel as arrays, one parameter a column. */
#include "db/orders/orders_impl.h"

#include "db/postgres/array.h"
#include "db/postgres/statements.h"

/* The orders' ids are drawn first, so that each row of the answer can be told by its place in the arrays. */
const struct statement ST_INSERT_BATCH = {
    "orders_insert_batch",
    "WITH want AS MATERIALIZED ("
    "  SELECT nextval('orders_id_seq') AS id, w.*"
    "  FROM unnest($7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::text[])"
    "       WITH ORDINALITY AS w (quantity, seen, name, mobile, key, place)"
    "), stock AS ("
    "  UPDATE product SET count = $2::bigint, version = version + 1, refuse_negative = false,"
    "                     updated_at = clock_timestamp(), updated_by = $4 WHERE id = $1::bigint RETURNING count"
    "), o AS ("
    "  INSERT INTO orders (id, amount, receiver_name, receiver_mobile, idempotency_key, created_by, updated_by)"
    "  OVERRIDING SYSTEM VALUE SELECT id, $3::numeric * quantity, name, mobile, key, $4, $4 FROM want"
    "  RETURNING id, amount, status, created_at"
    "), i AS ("
    "  INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, stock_seen, strategy, instance,"
    "                          read_at, stock_xid, created_by, updated_by)"
    "  SELECT id, $1::bigint, $3::numeric, quantity, seen, $5, $4, $6::timestamptz, pg_current_xact_id(), $4, $4"
    "  FROM want"
    ") SELECT o.id, o.amount, o.status, " RFC3339(
        "o.created_at") ", pg_current_xact_id() "
                        "FROM o JOIN want USING (id), stock ORDER BY place",
    11};

enum db_status orders_insert_batch(struct db *db, struct order_draft *drafts, size_t count,
                                   const struct order_origin *origin, const struct stock_taken *taken,
                                   int64_t left)
{
    enum { QUANTITIES, SEEN, NAMES, MOBILES, KEYS, COLUMNS };
    struct array columns[COLUMNS];
    const char *arrays[COLUMNS];
    arrays_begin(columns, COLUMNS);
    for (size_t i = 0; i < count; i++) {
        const struct order_request *request = drafts[i].request;
        array_add_number(&columns[QUANTITIES], request->quantity);
        array_add_number(&columns[SEEN], drafts[i].seen);
        array_add(&columns[NAMES], request->receiver_name);
        array_add(&columns[MOBILES], request->receiver_mobile);
        array_add(&columns[KEYS], request->idempotency_key);
    }
    bool whole = arrays_end(columns, COLUMNS, arrays);
    const char *const values[] = {
        DB_NUMBER(drafts[0].request->product_id),
        DB_NUMBER(left),
        taken->price,
        origin->instance,
        origin->strategy,
        taken->read_at,
        arrays[QUANTITIES],
        arrays[SEEN],
        arrays[NAMES],
        arrays[MOBILES],
        arrays[KEYS],
    };
    AUTO_RESULT rows = NULL;
    enum db_status status = whole ? db_run(db, &ST_INSERT_BATCH, values, &rows) : DB_ERROR;
    arrays_free(columns, COLUMNS);
    if (status == DB_OK && (size_t)PQntuples(rows) != count)
        return DB_ERROR;
    for (size_t i = 0; status == DB_OK && i < count; i++)
        order_inserted(rows, (int)i, drafts[i].request, origin, drafts[i].seen, drafts[i].order);
    return status;
}
