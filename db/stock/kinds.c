/* The table of the kinds of stock, and how the stock of each is made. */
#include "db/stock/kinds.h"

#include <string.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

static const struct statement ST_EMPTY_UNITS = {"stock_empty_units",
                                                "DELETE FROM product_unit WHERE product_id = $1", 1};
static const struct statement ST_EMPTY_BUCKETS = {"stock_empty_buckets",
                                                  "DELETE FROM product_bucket WHERE product_id = $1", 1};

static const struct statement ST_FILL_COUNTER = {"stock_fill_counter",
                                                 "UPDATE product SET count = $2 WHERE id = $1", 2};
static const struct statement ST_FILL_UNITS = {
    "stock_fill_units",
    "INSERT INTO product_unit (product_id, no) SELECT $1, no FROM generate_series(1, $2::bigint) no", 2};
static const struct statement ST_FILL_BUCKETS = {
    "stock_fill_buckets",
    "INSERT INTO product_bucket (product_id, no, count) "
    "SELECT $1, no, $2::bigint / n + (no < $2::bigint % n)::int "
    "FROM (SELECT " TEXT(STOCK_BUCKETS_EACH) ") AS all_of (n), generate_series(0, n - 1) no",
    2};
/* The plans that sessions keep were perhaps made for a small table, and then read and sort all of a large one. */
static const struct statement ST_ANALYZE_UNITS = {"stock_analyze_units", "ANALYZE product_unit", 0};

const struct stock_kind_row stock_kinds[STOCK_KIND_COUNT] = {
    [STOCK_COUNTER] = {"counter", STOCK_MAX, &ST_FILL_COUNTER, NULL},
    [STOCK_UNITS] = {"units", STOCK_UNITS_MAX, &ST_FILL_UNITS, &ST_ANALYZE_UNITS},
    [STOCK_BUCKETS] = {"buckets", STOCK_MAX, &ST_FILL_BUCKETS, NULL},
    [STOCK_REDIS] = {"redis", STOCK_MAX, &ST_FILL_COUNTER, NULL},
};

bool stock_kind_find(const char *name, enum stock_kind *ret_kind)
{
    for (int i = 0; i < STOCK_KIND_COUNT; i++)
        if (strcmp(stock_kinds[i].name, name) == 0) {
            *ret_kind = (enum stock_kind)i;
            return true;
        }
    return false;
}

enum db_status stock_fill(struct db *db, int64_t product_id, enum stock_kind kind, int64_t stock)
{
    const char *const values[] = {DB_NUMBER(product_id), DB_NUMBER(stock)};
    const struct statement *const steps[] = {&ST_EMPTY_UNITS, &ST_EMPTY_BUCKETS, stock_kinds[kind].fill,
                                             stock_kinds[kind].settle};
    enum db_status status = DB_OK;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == DB_OK; i++) {
        AUTO_RESULT done = NULL;
        if (steps[i])
            status = db_run(db, steps[i], values, &done);
    }
    return status;
}
