/* A shop in memory in place of the database, for tests of batches.
 *
 * It defines the functions of db/ that a batch calls, so one file of a program includes it. It keeps stock and orders as a
 * database would: what a transaction writes is there once it is committed. One call can be made to fail, the clock only
 * goes on where somebody waits for the row, and rules that hold for every batch are checked at each call. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_ENGINE_BATCH_FAKES_H
#define OVERSELL_TESTS_UNIT_SERVICE_ENGINE_BATCH_FAKES_H

#include "tests/unit/unit.h"

#include "db/orders/commit_recovery.h"
#include "service/engine/batch.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHOP_PRODUCT = 7, SHOP_ORDERS_MAX = 4 * ORDER_BATCH_MAX, SECOND_US = 1000000 };

static const char SHOP_INSTANCE[] = "instance under test";
static const char SHOP_ERROR[] = "the database's words";
static const char POISON[] = "the database refuses this name";

struct shop_order {
    const struct order_request *request;
    int64_t seen;
    int transaction;
};

static struct fake_batch_shop {
    /* how it stands */
    int64_t stock;
    struct shop_order orders[SHOP_ORDERS_MAX];
    size_t order_count;
    const char *replayed, *mismatched, *in_progress; /* keys that are in use already */
    const char *constraint;                          /* that is violated */
    bool no_product;
    const char *kind;       /* NULL: the counter */
    int64_t row_free_at_us; /* until then somebody else has the row */
    const char *fails;      /* the call that fails … */
    int fails_at;           /* … when it is made for the how-manieth time, from 1 */
    enum db_status fails_with;
    enum commit_fate settled;

    /* the open transaction */
    bool open, failed;
    int transactions;
    int64_t stock_before;
    size_t orders_before;

    /* what has come */
    int64_t now_us, deadline_us, lock_deadline_us;
    int calls_of_fails;
    char log[8192], broken[1024];
} shop;

static void append(char *to, size_t size, const char *text)
{
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s%s", used ? " " : "", text);
}

static void rule(bool kept, const char *text)
{
    if (!kept)
        append(shop.broken, sizeof shop.broken, text);
}

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    *ret_now = (struct timespec){.tv_sec = shop.now_us / SECOND_US,
                                 .tv_nsec = shop.now_us % SECOND_US * 1000};
    return 0;
}

static enum db_status call(const char *name)
{
    append(shop.log, sizeof shop.log, name);
    if (!shop.fails || strcmp(name, shop.fails) != 0 || ++shop.calls_of_fails != shop.fails_at)
        return DB_OK;
    return shop.fails_with;
}

static enum db_status statement(const char *name)
{
    rule(shop.open, "a statement outside the transaction");
    rule(!shop.failed, "a statement after a failure");
    if (shop.now_us >= shop.deadline_us) {
        append(shop.log, sizeof shop.log, "late");
        shop.failed = true;
        return DB_TIMEOUT;
    }
    enum db_status status = call(name);
    shop.failed = status != DB_OK;
    return status;
}

struct db {
    int nothing;
};
static struct db shop_db;

void db_set_deadline(struct db *db, int64_t deadline_us, int64_t lock_deadline_us)
{
    rule(db == &shop_db, "another database");
    shop.deadline_us = deadline_us;
    shop.lock_deadline_us = lock_deadline_us < deadline_us ? lock_deadline_us : deadline_us;
}

enum db_status db_ready(struct db *db)
{
    rule(db == &shop_db && !shop.open, "a try begins with the last one's transaction");
    return call("ready");
}

void db_begin(struct db *db, enum db_isolation isolation)
{
    rule(db == &shop_db && !shop.open && isolation == DB_READ_COMMITTED,
         "another transaction than it should be");
    shop.open = true;
    shop.failed = false;
    shop.transactions++;
    shop.stock_before = shop.stock;
    shop.orders_before = shop.order_count;
}

static void undo(void)
{
    shop.open = false;
    shop.stock = shop.stock_before;
    shop.order_count = shop.orders_before;
}

void db_rollback(struct db *db)
{
    rule(shop.open, "a rollback without a transaction");
    undo();
    call("rollback");
}

enum db_status db_commit(struct db *db)
{
    rule(shop.open && !shop.failed, "a commit without a transaction that goes well");
    shop.open = false;
    enum db_status status = call("commit");
    if (status != DB_OK && !(status == DB_UNKNOWN && shop.settled == COMMIT_COMMITTED))
        undo();
    return status;
}

const struct db_session *db_session(const struct db *db)
{
    static const struct db_session session = {"4711", "just now", "this run"};
    return &session;
}

enum commit_fate commit_recovery(struct db *db, struct lost_commit *lost, int64_t until_us)
{
    char expected[24];
    snprintf(expected, sizeof expected, "%d", shop.transactions);
    rule(strcmp(lost->xid, expected) == 0 && until_us > shop.now_us, "another transaction is settled");
    rule(lost->order.id > 0, "the orders are settled without one of them");
    db_set_deadline(db, until_us, until_us); /* as the real one does */
    call("settle");
    return shop.settled;
}

const char *db_error(const struct db *db)
{
    return SHOP_ERROR;
}

const char *db_error_constraint(const struct db *db)
{
    return shop.constraint ? shop.constraint : "";
}

static enum key_claim claim(const char *key)
{
    if (shop.mismatched && strcmp(key, shop.mismatched) == 0)
        return KEY_MISMATCH;
    if (shop.in_progress && strcmp(key, shop.in_progress) == 0)
        return KEY_IN_PROGRESS;
    if (shop.replayed && strcmp(key, shop.replayed) == 0)
        return KEY_REPLAY;
    for (size_t i = 0; i < shop.order_count; i++)
        if (shop.orders[i].request->idempotency_key &&
            strcmp(shop.orders[i].request->idempotency_key, key) == 0)
            return KEY_REPLAY;
    return KEY_NEW;
}

enum db_status orders_claim_keys(struct db *db, struct order_draft *drafts, size_t count)
{
    enum db_status status = statement("keys");
    for (size_t i = 0; status == DB_OK && i < count; i++) {
        const char *key = drafts[i].request->idempotency_key;
        for (size_t j = 0; j < i; j++)
            rule(strcmp(key, drafts[j].request->idempotency_key) != 0, "a key is claimed twice");
        drafts[i].claim = claim(key);
        if (drafts[i].claim == KEY_REPLAY)
            *drafts[i].order = (struct order){.id = 4711};
    }
    return status;
}

enum take_status stock_lock(struct db *db, int64_t product_id, struct stock_taken *ret_taken)
{
    rule(product_id == SHOP_PRODUCT, "another product");
    rule(ret_taken->seen == STOCK_UNSEEN && !ret_taken->kind[0], "a try begins with what the last one saw");
    ret_taken->db_status = statement("lock");
    if (ret_taken->db_status == DB_OK && shop.row_free_at_us > shop.now_us) {
        bool in_time = shop.row_free_at_us < shop.lock_deadline_us;
        int64_t until_us = in_time ? shop.row_free_at_us : shop.lock_deadline_us;
        shop.now_us = until_us > shop.now_us ? until_us : shop.now_us;
        ret_taken->db_status = in_time ? DB_OK : DB_LOCK_TIMEOUT;
        shop.failed = !in_time;
    }
    if (ret_taken->db_status != DB_OK)
        return TAKE_FAILED;
    if (shop.no_product)
        return TAKE_NO_PRODUCT;
    ret_taken->seen = shop.stock;
    snprintf(ret_taken->price, sizeof ret_taken->price, "19.90");
    if (!shop.kind)
        return TAKE_OK;
    snprintf(ret_taken->kind, sizeof ret_taken->kind, "%s", shop.kind);
    return TAKE_WRONG_KIND;
}

enum db_status orders_insert_batch(struct db *db, struct order_draft *drafts, size_t count,
                                   const struct order_origin *origin, const struct stock_taken *taken,
                                   int64_t left)
{
    rule(count > 0 && strcmp(origin->strategy, "batched") == 0 &&
             strcmp(origin->instance, SHOP_INSTANCE) == 0,
         "orders of another origin");
    rule(taken->seen == shop.stock && strcmp(taken->price, "19.90") == 0, "stock that was not read");
    rule(left >= 0, "more is sold than there is");
    enum db_status status = statement("insert");
    for (size_t i = 0; status == DB_OK && i < count; i++) {
        const char *name = drafts[i].request->receiver_name;
        if (name && strcmp(name, POISON) == 0) {
            shop.failed = true;
            return DB_CHECK;
        }
        shop.orders[shop.order_count++] = (struct shop_order){drafts[i].request, drafts[i].seen,
                                                              shop.transactions};
        *drafts[i].order = (struct order){.id = (int64_t)shop.order_count, .stock_seen = drafts[i].seen};
        snprintf(drafts[i].order->xid, sizeof drafts[i].order->xid, "%d", shop.transactions);
    }
    if (status == DB_OK)
        shop.stock = left;
    return status;
}

enum db_status stock_available(struct db *db, int64_t product_id, int64_t *ret_available)
{
    rule(product_id == SHOP_PRODUCT && !shop.open, "a look inside the transaction");
    *ret_available = shop.stock;
    return call("look");
}

#endif
