/* Writing accepted orders: the products' rows are locked in the order of their ids, what fits is worked out here, and
 * one statement inserts it. Two more are run only where something is out of the ordinary. */
#include "db/orders/write_behind_impl.h"

#include "db/postgres/array.h"

#include <stdlib.h>
#include <string.h>

static const struct statement ST_WHICH_UNWRITTEN = {
    "behind_which_unwritten", "SELECT id FROM unnest($1::bigint[]) AS f (id) WHERE " NOT_WRITTEN, 1};

/* The columns of an order, as arrays. */
enum { IDS, PRODUCTS, QUANTITIES, PRICES, SEEN, TIMES, NAMES, MOBILES, KEYS, INSTANCES, COLUMNS };
#define ORDERS_AS_ROWS                                                                                       \
    "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::numeric[], $5::bigint[],"            \
    "                     $6::timestamptz[], $7::text[], $8::text[], $9::text[], $10::text[])"               \
    " AS w (id, product, quantity, price, seen, at, name, mobile, key, instance)"

/* What conflicts, by id or by key, is neither inserted nor subtracted. */
static const struct statement ST_WRITE = {
    "behind_write",
    "WITH want AS MATERIALIZED (" ORDERS_AS_ROWS "), o AS ("
    "  INSERT INTO orders (id, amount, receiver_name, receiver_mobile, idempotency_key, created_at, created_by,"
    "                      updated_by)"
    "  OVERRIDING SYSTEM VALUE SELECT id, price * quantity, name, mobile, key, at, instance, instance FROM want"
    "  ON CONFLICT DO NOTHING RETURNING id"
    "), i AS ("
    "  INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, stock_seen, strategy, instance,"
    "                          stock_xid, created_at, created_by, updated_by)"
    "  SELECT id, product, price, quantity, seen, $11, instance, pg_current_xact_id(), at, instance, instance"
    "  FROM want JOIN o USING (id)"
    "), s AS ("
    "  UPDATE product SET count = count - units, version = version + 1, refuse_negative = false,"
    "                     updated_at = clock_timestamp(), updated_by = by"
    "  FROM (SELECT product AS taken_from, sum(quantity) AS units, max(instance) AS by FROM want JOIN o USING (id)"
    "        GROUP BY product) AS taken"
    "  WHERE product.id = taken_from"
    ") SELECT id FROM o",
    11};

/* The key stays with the order that has it. */
static const struct statement ST_REJECT = {
    "behind_reject",
    "WITH want AS MATERIALIZED (" ORDERS_AS_ROWS "), o AS ("
    "  INSERT INTO orders (id, amount, status, receiver_name, receiver_mobile, created_at, created_by, updated_by)"
    "  OVERRIDING SYSTEM VALUE SELECT id, price * quantity, 'rejected', name, mobile, at, instance, instance"
    "  FROM want ON CONFLICT (id) DO NOTHING RETURNING id"
    "), r AS ("
    "  INSERT INTO order_rejected (order_id, product_id, quantity, strategy, instance, created_by, updated_by)"
    "  SELECT id, product, quantity, $11, instance, instance, instance FROM want JOIN o USING (id)"
    ") SELECT id FROM o",
    11};

/* As where the server has none. DB_ERROR would say that there is no writing these orders, and they would be given up. */
static const enum db_status NO_MEMORY = DB_REFUSED;

/* A product of the batch: its row, and what is left of it while the orders are gone through. */
struct shelf {
    int64_t product_id, left;
    struct product_behind row;
};

struct batch {
    struct db *db;
    const char *strategy;
    struct accepted_order *orders;
    size_t count;
    struct shelf shelves[WRITE_BATCH_MAX];
    size_t shelf_count;
    struct accepted_order *chosen[WRITE_BATCH_MAX]; /* of the orders those that a statement is about */
    size_t chosen_count;
};

static struct shelf *find_shelf(struct batch *batch, int64_t product_id)
{
    size_t least = 0, end = batch->shelf_count;
    while (least < end) { /* they are sorted */
        size_t middle = (least + end) / 2;
        if (batch->shelves[middle].product_id == product_id)
            return &batch->shelves[middle];
        if (batch->shelves[middle].product_id < product_id)
            least = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

static enum db_status lock_products(struct batch *batch)
{
    struct array ids;
    const char *value;
    AUTO_RESULT rows = NULL;
    arrays_begin(&ids, 1);
    for (size_t i = 0; i < batch->count; i++)
        if (i == 0 || batch->orders[i].product_id != batch->orders[i - 1].product_id)
            array_add_number(&ids, batch->orders[i].product_id);
    enum db_status status = arrays_end(&ids, 1, &value) ? db_run(batch->db, &ST_LOCK_PRODUCTS, &value, &rows)
                                                        : NO_MEMORY;
    arrays_free(&ids, 1);
    batch->shelf_count = 0;
    for (int i = 0; status == DB_OK && i < PQntuples(rows); i++) {
        struct shelf *shelf = &batch->shelves[batch->shelf_count++];
        shelf->product_id = behind_number(rows, i, 0);
        product_behind_read(rows, i, &shelf->row);
        shelf->left = shelf->row.count;
    }
    return status;
}

/* Runs STATEMENT for those that are chosen; *ret_rows are the ids that it returns. */
static enum db_status run_for_chosen(struct batch *batch, const struct statement *statement,
                                     PGresult **ret_rows)
{
    struct array columns[COLUMNS];
    const char *values[COLUMNS + 1];
    arrays_begin(columns, COLUMNS);
    for (size_t i = 0; i < batch->chosen_count; i++) {
        const struct accepted_order *order = batch->chosen[i];
        array_add_number(&columns[IDS], order->id);
        array_add_number(&columns[PRODUCTS], order->product_id);
        array_add_number(&columns[QUANTITIES], order->quantity);
        array_add(&columns[PRICES], order->price);
        array_add_number(&columns[SEEN], order->stock_seen);
        array_add(&columns[TIMES], order->accepted_at);
        array_add(&columns[NAMES], order->receiver_name);
        array_add(&columns[MOBILES], order->receiver_mobile);
        array_add(&columns[KEYS], order->idempotency_key);
        array_add(&columns[INSTANCES], order->instance);
    }
    enum db_status status = NO_MEMORY;
    if (arrays_end(columns, COLUMNS, values)) {
        values[COLUMNS] = batch->strategy;
        status = db_run(batch->db, statement, values, ret_rows);
    }
    arrays_free(columns, COLUMNS);
    return status;
}

static int by_id(const void *a, const void *b)
{
    const struct accepted_order *const *x = a, *const *y = b;
    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

/* Gives the fate RETURNED to those that are chosen whose ids ROWS has; the others stay chosen. */
static void settle_returned(struct batch *batch, const PGresult *rows, enum write_fate returned)
{
    struct accepted_order *sorted[WRITE_BATCH_MAX], wanted = {0}, *const key = &wanted;
    size_t kept = 0;
    if ((size_t)PQntuples(rows) == batch->chosen_count) {
        for (size_t i = 0; i < batch->chosen_count; i++)
            batch->chosen[i]->fate = returned;
        batch->chosen_count = 0;
        return;
    }
    memcpy(sorted, batch->chosen, batch->chosen_count * sizeof sorted[0]);
    qsort(sorted, batch->chosen_count, sizeof sorted[0], by_id);
    for (int i = 0; i < PQntuples(rows); i++) {
        wanted.id = behind_number(rows, i, 0);
        struct accepted_order **found = bsearch(&key, sorted, batch->chosen_count, sizeof sorted[0], by_id);
        if (found)
            (*found)->fate = returned;
    }
    for (size_t i = 0; i < batch->chosen_count; i++)
        if (batch->chosen[i]->fate != returned)
            batch->chosen[kept++] = batch->chosen[i];
    batch->chosen_count = kept;
}

/* Those whose stock is still the one that they were taken from. */
static void choose_current(struct batch *batch)
{
    batch->chosen_count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct accepted_order *order = &batch->orders[i];
        const struct shelf *shelf = find_shelf(batch, order->product_id);
        order->fate = WRITE_OUTDATED;
        if (shelf && shelf->row.epoch == order->epoch &&
            strcmp(shelf->row.kind, stock_kinds[STOCK_REDIS].name) == 0) {
            order->fate = WRITE_KNOWN;
            batch->chosen[batch->chosen_count++] = order;
        }
    }
}

/* Subtracts those that are chosen from what is left; false where it does not suffice. */
static bool all_fit(struct batch *batch)
{
    bool fit = true;
    for (size_t i = 0; i < batch->chosen_count; i++) {
        struct shelf *shelf = find_shelf(batch, batch->chosen[i]->product_id);
        if (shelf->left < batch->chosen[i]->quantity)
            fit = false; /* nor is it subtracted: what others wrote into the stream may be any number */
        else
            shelf->left -= batch->chosen[i]->quantity;
    }
    return fit;
}

/* Leaves those chosen that have not been written before and for which the stock suffices; the other new ones are
 * REJECTED from here on. */
static enum db_status choose_fitting(struct batch *batch)
{
    AUTO_RESULT rows = NULL;
    struct array ids;
    const char *value;
    arrays_begin(&ids, 1);
    for (size_t i = 0; i < batch->chosen_count; i++)
        array_add_number(&ids, batch->chosen[i]->id);
    enum db_status status = arrays_end(&ids, 1, &value)
                                ? db_run(batch->db, &ST_WHICH_UNWRITTEN, &value, &rows)
                                : NO_MEMORY;
    arrays_free(&ids, 1);
    if (status != DB_OK)
        return status;
    settle_returned(batch, rows, WRITE_REJECTED);
    for (size_t i = 0; i < batch->shelf_count; i++)
        batch->shelves[i].left = batch->shelves[i].row.count;
    batch->chosen_count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct accepted_order *order = &batch->orders[i];
        struct shelf *shelf = find_shelf(batch, order->product_id);
        if (order->fate != WRITE_REJECTED || shelf->left < order->quantity)
            continue;
        shelf->left -= order->quantity;
        order->fate = WRITE_KNOWN;
        batch->chosen[batch->chosen_count++] = order;
    }
    return DB_OK;
}

static enum db_status write_chosen(struct batch *batch)
{
    AUTO_RESULT rows = NULL;
    if (batch->chosen_count == 0)
        return DB_OK;
    enum db_status status = run_for_chosen(batch, &ST_WRITE, &rows);
    if (status == DB_OK)
        settle_returned(batch, rows, WRITE_DONE);
    return status;
}

/* Records those that are still chosen, which conflicted with something, and those that did not fit; what conflicts again
 * is the very same order, written before. */
static enum db_status reject_others(struct batch *batch)
{
    AUTO_RESULT rows = NULL;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->orders[i].fate == WRITE_REJECTED) {
            batch->orders[i].fate = WRITE_KNOWN;
            batch->chosen[batch->chosen_count++] = &batch->orders[i];
        }
    if (batch->chosen_count == 0)
        return DB_OK;
    enum db_status status = run_for_chosen(batch, &ST_REJECT, &rows);
    if (status == DB_OK)
        settle_returned(batch, rows, WRITE_REJECTED);
    return status;
}

enum db_status orders_write_behind(struct db *db, struct accepted_order *orders, size_t count,
                                   const char *strategy)
{
    struct batch batch = {.db = db, .strategy = strategy, .orders = orders, .count = count};
    db_begin(db, DB_READ_COMMITTED);
    enum db_status status = lock_products(&batch);
    if (status == DB_OK) {
        choose_current(&batch);
        if (!all_fit(&batch))
            status = choose_fitting(&batch);
    }
    if (status == DB_OK)
        status = write_chosen(&batch);
    if (status == DB_OK)
        status = reject_others(&batch);
    if (status == DB_OK)
        return db_commit(db);
    db_rollback(db);
    return status;
}
