/* Products over HTTP: read, create, reset, and audit them. */
#include "base/clock.h"
#include "service/api/api.h"

#include "db/products/audit.h"
#include "db/products/products.h"
#include "service/write_behind/reconcile.h"

#include <stdlib.h>
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
        char names[100];
        size_t used = 0;
        for (size_t i = 0; i < STOCK_KIND_COUNT && used < sizeof names; i++)
            used += (size_t)snprintf(names + used, sizeof names - used, " %s", stock_kinds[i].name);
        reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "kind"),
                      "there is no stock kind '%s'; valid:%s", name, names);
        return false;
    }
    int64_t most = stock_kinds[stock->kind].most;
    if (stock->units <= most)
        return true;
    reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "stock"),
                  "stock must be from 0 to %lld for the kind %s", (long long)most,
                  stock_kinds[stock->kind].name);
    return false;
}

void products_list(struct exchange *x, struct worker *worker)
{
    char *json;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        status = view_products(worker->db, &json);
    if (status == DB_OK)
        api_reply_json_text(x, json, PROBLEM_NO_SUCH_PRODUCT, "product");
    else
        api_reply_db(x, worker, status);
}

static void reply_product(struct exchange *x, struct worker *worker, int64_t id, int http_status)
{
    char *json;
    enum db_status status = view_product(worker->db, id, &json);
    if (status != DB_OK)
        api_reply_db(x, worker, status);
    else
        api_reply_json_text(x, json, PROBLEM_NO_SUCH_PRODUCT, "product");
    if (x->status == 200)
        x->status = http_status;
}

void products_get(struct exchange *x, struct worker *worker)
{
    int64_t id;
    if (!api_path_id(x, PROBLEM_NO_SUCH_PRODUCT, &id))
        return;
    enum db_status status = api_database(worker);
    if (status == DB_OK)
        reply_product(x, worker, id, 200);
    else
        api_reply_db(x, worker, status);
}

bool api_pause(struct exchange *x, struct service *service, int64_t product_id)
{
    int64_t deadline_us = monotonic_us() + 2 * service->config.order_timeout_ms * 1000;
    enum pausing pausing = PAUSED;
    if (!access_teaches(x))
        pausing = product_pause_first(service->orders.queue, product_id, deadline_us);
    else if (!product_pause(service->orders.queue, product_id, deadline_us))
        pausing = PAUSE_TOO_LATE;
    if (pausing != PAUSED)
        reply_problem(x, PROBLEM_LOCK_TIMEOUT, NULL, "%s; nothing was changed. Try again",
                      pausing == PAUSE_OF_ANOTHER ? "another change of this product is in progress"
                                                  : "orders of this product are still in progress");
    return pausing == PAUSED;
}

/* Redis could not be asked, or PostgreSQL not for what goes with it. */
static void reply_reconciliation(struct exchange *x, struct worker *worker, enum reconciled result,
                                 const struct reconciliation *r)
{
    switch (result) {
    case RECONCILE_DATABASE: api_reply_db(x, worker, r->db_status); return;
    case RECONCILE_REDIS:
        reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, json_pack("{s:s}", "backend", "redis"),
                      "Redis, which holds this stock, does not answer; start it, or check REDIS_URL");
        return;
    default: reply_problem(x, PROBLEM_NO_SUCH_PRODUCT, NULL, "no product has this id"); return;
    }
}

/* A change of a product: the product's orders wait from change_begin to change_end. */
struct change {
    int64_t id;
    struct stock stock;
    bool sale_begins; /* its orders so far go */
    struct redis_keeper keeper;
    enum db_status status;
    enum product_change change;
};

/* False with a reply made. */
static bool change_begin(struct exchange *x, struct worker *worker, struct change *change)
{
    if (!worker_stock(worker)) {
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
        return false;
    }
    if (!api_pause(x, worker->service, change->id))
        return false;
    if (!access_owns(
            x,
            change->id)) { /* checked again: the sandbox may have gone to another learner during the wait */
        product_resume(worker->service->orders.queue, change->id);
        return false;
    }
    change->status = api_database(worker);
    redis_keeper_init(&change->keeper, worker->db, worker->stock,
                      monotonic_us() + worker->service->config.order_timeout_ms * 1000);
    return true;
}

/* Loads the new stock where it lies in Redis: if that fails, the first order does. False with a reply made, where nothing
 * was changed. */
static bool change_end(struct exchange *x, struct worker *worker, struct change *change)
{
    bool changed = change->status == DB_OK && change->change <= PRODUCT_CREATED;
    struct reconciliation loaded;
    if (changed && change->stock.kind == STOCK_REDIS) {
        writer_wake(worker->service->orders.writer);
        (void)reconcile(worker->db, worker->stock, change->id, change->keeper.deadline_us, &loaded);
    }
    if (changed && change->sale_begins)
        sale_begins(&worker->service->sales, change->id);
    product_resume(worker->service->orders.queue, change->id);
    live_forget(worker->service, change->id);
    if (changed)
        return true;
    if (change->status != DB_OK)
        api_reply_db(x, worker, change->status);
    else if (change->change == PRODUCT_KEPT)
        reply_reconciliation(x, worker, change->keeper.failed, &change->keeper.last);
    else if (change->change == PRODUCT_AWAITED)
        reply_problem(x, PROBLEM_LOCK_TIMEOUT, NULL,
                      "accepted orders of the product are still being written; try again in a moment");
    else
        reply_problem(x, PROBLEM_NO_SUCH_PRODUCT, NULL, "there is no product %lld", (long long)change->id);
    return false;
}

void products_replace(struct exchange *x, struct worker *worker)
{
    struct change change = {0};
    const char *name = NULL, *price = NULL, *kind = NULL;
    const struct member members[] = {
        {"name", BODY_STRING, true, &name, 1, PRODUCT_NAME_MAX},
        {"price", BODY_STRING, true, &price, 1, 13},
        {"stock", BODY_INTEGER, true, &change.stock.units, 0, STOCK_MAX},
        {"kind", BODY_STRING, false, &kind, 1, 16},
        {0},
    };
    if (!api_path_id(x, PROBLEM_NO_SUCH_PRODUCT, &change.id))
        return;
    AUTO_JSON body = api_body(x, members);
    if (!body || !read_kind(x, kind, &change.stock))
        return;
    if (!is_price(price)) {
        reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "price"),
                      "price must be a decimal string such as \"19.90\", up to 9999999999.99");
        return;
    }
    if (!change_begin(x, worker, &change))
        return;
    if (change.status == DB_OK)
        change.status = products_put(worker->db, change.id, name, price, &change.stock,
                                     worker->service->instance, &change.keeper.base, &change.change);
    if (!change_end(x, worker, &change))
        return;
    bool created = change.change == PRODUCT_CREATED;
    if (created)
        http_set_header(x, "Location", "/products/%lld", (long long)change.id);
    reply_product(x, worker, change.id, created ? 201 : 200);
}

void products_set_stock(struct exchange *x, struct worker *worker)
{
    struct change change = {.sale_begins = true};
    const char *kind = NULL;
    const struct member members[] = {
        {"stock", BODY_INTEGER, true, &change.stock.units, 0, STOCK_MAX},
        {"kind", BODY_STRING, false, &kind, 1, 16},
        {0},
    };
    if (!api_path_id(x, PROBLEM_NO_SUCH_PRODUCT, &change.id))
        return;
    AUTO_JSON body = api_body(x, members);
    if (!body || !read_kind(x, kind, &change.stock) || !access_owns(x, change.id) ||
        !change_begin(x, worker, &change))
        return;
    if (change.status == DB_OK)
        change.status = products_reset(worker->db, change.id, &change.stock, worker->service->instance,
                                       &change.keeper.base, &change.change);
    if (change_end(x, worker, &change))
        reply_product(x, worker, change.id, 200);
}

enum reconciled api_audit(struct worker *worker, int64_t id, struct reconciliation *ret, char **ret_json)
{
    struct service *service = worker->service;
    bool in_redis = false;
    *ret = (struct reconciliation){0};
    *ret_json = NULL;
    ret->db_status = api_database(worker);
    if (ret->db_status == DB_OK)
        ret->db_status = audit_product(worker->db, id, orders_running(&service->orders, id), NULL, ret_json,
                                       &in_redis);
    if (ret->db_status != DB_OK)
        return RECONCILE_DATABASE;
    if (!in_redis)
        return *ret_json ? RECONCILED : RECONCILE_NO_PRODUCT;
    free(*ret_json); /* both are to be looked at as of one moment */
    *ret_json = NULL;
    if (!worker_stock(worker)) {
        ret->db_status = DB_ERROR;
        return RECONCILE_DATABASE;
    }
    return reconcile_audit(worker->db, worker->stock, id, orders_running(&service->orders, id),
                           monotonic_us() + service->config.order_timeout_ms * 1000, ret, ret_json);
}

void audit_get(struct exchange *x, struct worker *worker)
{
    int64_t id;
    char *json;
    struct reconciliation r;
    if (!http_query_names(x, (const char *const[]){"product_id", NULL})) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "unknown query parameter; valid: product_id");
        return;
    }
    if (!api_query_integer(x, "product_id", 1, 1, INT64_MAX, &id))
        return;
    enum reconciled result = api_audit(worker, id, &r, &json);
    if (result == RECONCILED)
        api_reply_json_text(x, json, PROBLEM_NO_SUCH_PRODUCT, "product");
    else
        reply_reconciliation(x, worker, result, &r);
}
