/* Compares the stock of a product in Redis with PostgreSQL: loads it, repairs it, audits it, and removes it. */
#include "service/write_behind/reconcile.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 3 }; /* Redis may be restarted between looking and writing */

static atomic_ullong repaired_units;

uint64_t reconcile_repaired_units(void)
{
    return atomic_load(&repaired_units);
}

/* Compares what Redis has, with the product's row locked in the open transaction. */
static enum reconciled compare(struct db *db, struct redis_stock *stock, int64_t product_id, int64_t epoch,
                               const char *shop, bool forget, int64_t deadline_us, struct reconciliation *ret)
{
    ret->lock_status = redis_stock_survey(stock, deadline_us, product_id, epoch, shop, forget, &ret->survey);
    if (ret->lock_status != LOCK_OK)
        return RECONCILE_REDIS;
    ret->db_status = orders_unwritten(db, ret->survey.ids, ret->survey.quantities, ret->survey.count,
                                      &ret->orders_to_come, &ret->units_to_come);
    return ret->db_status == DB_OK ? RECONCILED : RECONCILE_DATABASE;
}

/* Opens a transaction that keeps writers of the product out, and looks. */
static enum reconciled look(struct db *db, struct redis_stock *stock, int64_t product_id, int64_t deadline_us,
                            struct reconciliation *ret)
{
    *ret = (struct reconciliation){0};
    db_begin(db, DB_READ_COMMITTED);
    ret->db_status = product_behind_lock(db, product_id, &ret->product);
    if (ret->db_status != DB_OK)
        return RECONCILE_DATABASE;
    if (!ret->product.found)
        return RECONCILE_NO_PRODUCT;
    if (strcmp(ret->product.kind, stock_kinds[STOCK_REDIS].name) != 0)
        return RECONCILE_OTHER_KIND;
    return compare(db, stock, product_id, ret->product.epoch, ret->product.shop, false, deadline_us, ret);
}

static void note_repair(int64_t product_id, const struct stock_survey *survey, int64_t expected)
{
    if (!survey->loaded) {
        log_line(LOG_INFO, "product %" PRId64 ": %" PRId64 " are left in Redis", product_id, expected);
        return;
    }
    log_line(LOG_WARNING,
             "product %" PRId64 ": Redis had %" PRId64 " left where %" PRId64 " must be; repaired",
             product_id, survey->left, expected);
    atomic_fetch_add(&repaired_units, (unsigned long long)llabs(expected - survey->left));
}

/* Makes Redis's stock what it must be, while the row is still locked. *ret_done is false where Redis was restarted. */
static enum reconciled repair(struct redis_stock *stock, int64_t product_id, int64_t deadline_us,
                              struct reconciliation *r, bool *ret_done)
{
    int64_t expected = r->product.count - r->units_to_come;
    *ret_done = r->survey.loaded && r->survey.left == expected;
    if (*ret_done)
        return RECONCILED;
    r->lock_status = redis_stock_load(stock, deadline_us, product_id, r->product.epoch, r->product.price,
                                      &r->survey, expected, ret_done);
    if (r->lock_status != LOCK_OK)
        return RECONCILE_REDIS;
    if (*ret_done)
        note_repair(product_id, &r->survey, expected);
    return RECONCILED;
}

enum reconciled reconcile(struct db *db, struct redis_stock *stock, int64_t product_id, int64_t deadline_us,
                          struct reconciliation *ret)
{
    enum reconciled result = RECONCILED;
    bool done = false;
    for (int i = 0; i < TRIES && !done && result == RECONCILED; i++) {
        result = look(db, stock, product_id, deadline_us, ret);
        if (result == RECONCILED)
            result = repair(stock, product_id, deadline_us, ret, &done);
        survey_release(&ret->survey);
        db_rollback(db); /* nothing was written here */
    }
    if (result == RECONCILED && !done) {
        ret->lock_status = LOCK_AWAY;
        return RECONCILE_REDIS;
    }
    return result;
}

enum reconciled reconcile_audit(struct db *db, struct redis_stock *stock, int64_t product_id, int in_flight,
                                int64_t deadline_us, struct reconciliation *ret, char **ret_json)
{
    *ret_json = NULL;
    enum reconciled result = look(db, stock, product_id, deadline_us, ret);
    if (result == RECONCILED) {
        /* What is not loaded will be what it must be as soon as somebody wants some. */
        const struct stock_elsewhere elsewhere = {
            .left = ret->survey.loaded ? ret->survey.left : ret->product.count - ret->units_to_come,
            .units_to_come = ret->units_to_come,
            .orders_to_come = ret->orders_to_come,
        };
        bool is_elsewhere;
        ret->db_status = audit_product(db, product_id, in_flight, &elsewhere, ret_json, &is_elsewhere);
        result = ret->db_status == DB_OK ? RECONCILED : RECONCILE_DATABASE;
    }
    survey_release(&ret->survey);
    db_rollback(db);
    return result;
}

/* Within the transaction of the change, which has locked the row. */
static bool forget(struct stock_keeper *base, int64_t product_id, int64_t epoch, int64_t *ret_units)
{
    struct redis_keeper *keeper = (struct redis_keeper *)base;
    keeper->last = (struct reconciliation){0};
    enum reconciled result = compare(keeper->db, keeper->stock, product_id, epoch, "", true,
                                     keeper->deadline_us, &keeper->last);
    survey_release(&keeper->last.survey);
    *ret_units = keeper->last.units_to_come;
    keeper->failed = result;
    return result == RECONCILED;
}

void redis_keeper_init(struct redis_keeper *keeper, struct db *db, struct redis_stock *stock,
                       int64_t deadline_us)
{
    *keeper = (struct redis_keeper){
        .base = {.forget = forget}, .db = db, .stock = stock, .deadline_us = deadline_us};
}
