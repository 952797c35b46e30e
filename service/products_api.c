/* Products over HTTP, and the audit of their books. */
#include "service/api.h"

#include "db/books.h"
#include "db/products.h"

#include <string.h>

/* Decimal digits with at most two behind a point, within numeric(12,2). */
static bool is_price(const char *text)
{
    size_t whole = strspn(text, "0123456789");
    if (whole < 1 || whole > 10)
        return false;
    if (!text[whole])
        return true;
    size_t cents = strspn(text + whole + 1, "0123456789");
    return text[whole] == '.' && cents >= 1 && cents <= 2 && !text[whole + 1 + cents];
}

/* The kind of stock by its name, the counter where it has none; false with a reply made. */
static bool read_kind(struct exchange *x, const char *name, struct stock *stock)
{
    stock->kind = STOCK_COUNTER;
    if (name && !stock_kind_find(name, &stock->kind)) {
        reply_problem(x, INVALID_ORDER, json_pack("{s:s}", "member", "kind"), "there is no stock kind '%s'",
                      name);
        return false;
    }
    int64_t most = stock_kinds[stock->kind].most;
    if (stock->units <= most)
        return true;
    reply_problem(x, INVALID_ORDER, json_pack("{s:s}", "member", "stock"),
                  "stock must be from 0 to %lld where its kind is %s", (long long)most,
                  stock_kinds[stock->kind].name);
    return false;
}

void products_list(struct exchange *x, struct worker *worker)
{
    char *json;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        status = books_products(worker->db, &json);
    if (status == DB_OK)
        api_reply_json_text(x, json, UNKNOWN_PRODUCT, "product");
    else
        api_reply_db(x, worker, status);
}

static void reply_product(struct exchange *x, struct worker *worker, int64_t id, int http_status)
{
    char *json;
    enum db_status status = books_product(worker->db, id, &json);
    if (status != DB_OK)
        api_reply_db(x, worker, status);
    else
        api_reply_json_text(x, json, UNKNOWN_PRODUCT, "product");
    if (x->status == 200)
        x->status = http_status;
}

void products_get(struct exchange *x, struct worker *worker)
{
    int64_t id;
    if (!api_path_id(x, UNKNOWN_PRODUCT, &id))
        return;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        reply_product(x, worker, id, 200);
    else
        api_reply_db(x, worker, status);
}

/* Waits for this process's orders of the product and keeps new ones out; false with a reply made. */
static bool close_gate(struct exchange *x, struct worker *worker, int64_t id)
{
    int64_t longest_us = 2 * worker->service->config.order_timeout_ms * 1000;
    if (gate_close(worker->service->gate, id, monotonic_us() + longest_us))
        return true;
    reply_problem(x, LOCK_WAIT_OVER, NULL, "orders of this product still run");
    return false;
}

void products_replace(struct exchange *x, struct worker *worker)
{
    int64_t id;
    struct stock stock = {0};
    const char *name = NULL, *price = NULL, *kind = NULL;
    const struct member members[] = {
        {"name", STRING, true, &name, 1, PRODUCT_NAME_MAX},
        {"price", STRING, true, &price, 1, 13},
        {"stock", INTEGER, true, &stock.units, 0, STOCK_MAX},
        {"kind", STRING, false, &kind, 1, 16},
        {0},
    };
    if (!api_path_id(x, UNKNOWN_PRODUCT, &id))
        return;
    AUTO_JSON body = api_body(x, members);
    if (!body || !read_kind(x, kind, &stock))
        return;
    if (!is_price(price)) {
        reply_problem(x, INVALID_ORDER, json_pack("{s:s}", "member", "price"),
                      "price must be a decimal string as \"19.90\", up to 9999999999.99");
        return;
    }
    if (!close_gate(x, worker, id))
        return;
    bool created = false;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        status = products_put(worker->db, id, name, price, &stock, worker->service->instance, &created);
    gate_open(worker->service->gate, id);
    live_forget(worker->service, id);
    if (status != DB_OK) {
        api_reply_db(x, worker, status);
        return;
    }
    if (created)
        http_set_header(x, "Location", "/products/%lld", (long long)id);
    reply_product(x, worker, id, created ? 201 : 200);
}

void products_set_stock(struct exchange *x, struct worker *worker)
{
    int64_t id;
    struct stock stock = {0};
    const char *kind = NULL;
    const struct member members[] = {
        {"stock", INTEGER, true, &stock.units, 0, STOCK_MAX},
        {"kind", STRING, false, &kind, 1, 16},
        {0},
    };
    if (!api_path_id(x, UNKNOWN_PRODUCT, &id))
        return;
    AUTO_JSON body = api_body(x, members);
    if (!body || !read_kind(x, kind, &stock) || !access_owns(x, id))
        return;
    if (!close_gate(x, worker, id))
        return;
    bool found = false;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        status = products_reset(worker->db, id, &stock, worker->service->instance, &found);
    if (status == DB_OK)
        gate_begin_sale(worker->service->gate, id);
    gate_open(worker->service->gate, id);
    live_forget(worker->service, id);
    if (status != DB_OK)
        api_reply_db(x, worker, status);
    else if (!found)
        reply_problem(x, UNKNOWN_PRODUCT, NULL, "there is no product %lld", (long long)id);
    else
        reply_product(x, worker, id, 200);
}

void audit_get(struct exchange *x, struct worker *worker)
{
    int64_t id;
    char *json;
    if (!http_query_names(x, (const char *const[]){"product_id", NULL})) {
        reply_problem(x, BAD_REQUEST, NULL, "the only parameter is product_id");
        return;
    }
    if (!api_query_integer(x, "product_id", 1, 1, INT64_MAX, &id))
        return;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        status = books_audit(worker->db, id, orders_running(worker->service, id), &json);
    if (status == DB_OK)
        api_reply_json_text(x, json, UNKNOWN_PRODUCT, "product");
    else
        api_reply_db(x, worker, status);
}
