/* Puts a given number of earlier orders into the tables, to measure how orders become slower with those that are there. */
#include "loadtest/bench/earlier_orders.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/options.h"

#include <inttypes.h>
#include <stdio.h>

#define STATEMENT_US INT64_C(300000000) /* VACUUM of ten million orders on a slow disk */
#define BATCH 100000 /* PostgreSQL keeps one event in memory for each row and foreign key */

static bool ready(struct db *db)
{
    int64_t deadline = monotonic_us() + STATEMENT_US;
    db_set_deadline(db, deadline, deadline);
    return !interrupted() && db_ready(db) == DB_OK;
}

static bool run_sql(struct db *db, const char *sql)
{
    return ready(db) && db_run_script(db, sql) == DB_OK;
}

static bool insert_batch(struct db *db, struct earlier_orders *orders, int64_t count, int64_t first,
                         int64_t products)
{
    static const struct statement ST_INSERT = {
        "bench_earlier_orders",
        "WITH made AS ("
        "  INSERT INTO orders (amount, created_by, updated_by)"
        "  SELECT 19.90, 'earlier', 'earlier' FROM generate_series(1, $1::bigint) RETURNING id"
        "), numbered AS (SELECT id, row_number() OVER () - 1 + $2::bigint AS i FROM made"
        "), items AS ("
        "  INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid,"
        "                          created_by, updated_by)"
        "  SELECT id, $3::bigint + i % $4::bigint, 19.90, 1, 'atomic-statement', 'earlier', pg_current_xact_id(),"
        "         'earlier', 'earlier' FROM numbered"
        ") SELECT max(id) FROM made",
        4};
    const char *const values[] = {DB_NUMBER(count), DB_NUMBER(orders->inserted), DB_NUMBER(first),
                                  DB_NUMBER(products)};
    AUTO_RESULT row = NULL;
    if (!ready(db) || db_run(db, &ST_INSERT, values, &row) != DB_OK ||
        !parse_number(PQgetvalue(row, 0, 0), &orders->last_id))
        return false;
    orders->inserted += count;
    return true;
}

/* Removes the last measurement's orders, or all if there are too many. */
static bool delete_others(struct db *db, struct earlier_orders *orders)
{
    char sql[120];
    if (orders->inserted == 0 || orders->inserted > orders->wanted) {
        orders->inserted = 0;
        return run_sql(db, "TRUNCATE order_item, order_rejected, orders");
    }
    snprintf(sql, sizeof sql, "DELETE FROM orders WHERE id > %" PRId64, orders->last_id);
    return run_sql(db, sql);
}

bool earlier_orders_refresh(struct db *db, struct earlier_orders *orders, int64_t first, int64_t products,
                            int64_t stock)
{
    char sql[600];
    if (!delete_others(db, orders))
        return false;
    int64_t begun_us = monotonic_us();
    bool inserts = orders->inserted < orders->wanted;
    while (orders->inserted < orders->wanted) {
        int64_t missing = orders->wanted - orders->inserted;
        if (!insert_batch(db, orders, missing < BATCH ? missing : BATCH, first, products))
            return false;
    }
    if (inserts)
        orders->insert_s = (double)(monotonic_us() - begun_us) / 1e6;
    snprintf(sql, sizeof sql,
             "UPDATE product SET initial_count = %" PRId64 ", version = 0, stock_kind = 'counter', "
             "refuse_negative = false, count = %" PRId64 " - CASE WHEN id BETWEEN %" PRId64 " AND %" PRId64
             " THEN %" PRId64 " + (id - %" PRId64 " < %" PRId64 ")::int ELSE 0 END",
             stock, stock, first, first + products - 1, orders->wanted / products, first,
             orders->wanted % products);
    return run_sql(db, sql) && run_sql(db, "VACUUM (FULL, ANALYZE) product") &&
           run_sql(db, "VACUUM (ANALYZE) orders, order_item") && run_sql(db, "CHECKPOINT");
}
