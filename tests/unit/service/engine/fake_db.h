/* The database of the engine's tests: each function of db/ that the engine calls records the call, checks the rules that hold
 * for every order, and returns what the recorder says. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_ENGINE_FAKE_DB_H
#define OVERSELL_TESTS_UNIT_SERVICE_ENGINE_FAKE_DB_H

#include "tests/unit/service/engine/recorder.h"

struct db {
    int nothing;
};
static struct db fake_db;

/* What holds at every call to the database. */
static const char *db_call(const char *name)
{
    const struct placing *p = fake.placing;
    int64_t lock_end = p->lock_deadline_us < p->deadline_us ? p->lock_deadline_us : p->deadline_us;
    rule(fake.deadline_us == p->deadline_us, "the database does not have the order's deadline");
    rule(fake.lock_deadline_us == p->lock_deadline_us || fake.lock_deadline_us == lock_end,
         "the database does not have the lock's deadline");
    return fake_call(name);
}

/* What holds at every statement of an open transaction. */
static const char *tx_call(const char *name)
{
    rule(fake.tx_open, "a statement outside the transaction");
    rule(!fake.tx_failed, "a statement after a failure");
    rule(!holds_outside() || fake.tx_count == 2 || fake.grants, "a statement without the lock around it");
    const char *result = db_call(name);
    fake.tx_failed = strcmp(result, "ok") != 0;
    return result;
}

void db_set_deadline(struct db *db, int64_t deadline_us, int64_t lock_deadline_us)
{
    fake.deadline_us = deadline_us;
    fake.lock_deadline_us = lock_deadline_us;
}

enum db_status db_ready(struct db *db)
{
    rule(db == &fake_db, "another database");
    rule(!fake.tx_open && !fake.grants, "a try begins with the last one's transaction or lock");
    fake.tx_count = 0;
    return (enum db_status)meaning_of(db_results, db_call("ready"));
}

void db_begin(struct db *db, enum db_isolation isolation)
{
    rule(!fake.tx_open, "a transaction inside a transaction");
    rule(isolation == fake.placing->strategy->isolation, "another isolation than the strategy's");
    db_call("begin");
    fake.tx_open = true;
    fake.tx_failed = false;
    fake.tx_count++;
}

/* Each transaction has its own id. */
static void fake_xid(char *to, size_t size)
{
    snprintf(to, size, "%d", 100 + fake.tx_count);
}

enum db_status orders_claim_key(struct db *db, const struct order_request *request, enum key_claim *ret_claim,
                                struct order *ret_order)
{
    rule(request == fake.placing->request && request->idempotency_key,
         "a key that the request does not have");
    const char *result = tx_call("key");
    int claim = meaning_of(key_results, result);
    if (claim < 0)
        return (enum db_status)meaning_of(db_results, result);
    *ret_claim = (enum key_claim)claim;
    if (*ret_claim == KEY_REPLAY)
        *ret_order = (struct order){.id = 4711, .product_id = FAKE_PRODUCT, .quantity = FAKE_QUANTITY};
    return DB_OK;
}

/* Turns a result into what a stock policy returns. */
static enum take_status take_result(const char *result, struct stock_taken *taken)
{
    enum take_status status = (enum take_status)meaning_of(take_results, result);
    if (status == TAKE_FAILED)
        taken->db_status = (enum db_status)meaning_of(db_results, result);
    if (status == TAKE_WRONG_KIND)
        snprintf(taken->kind, sizeof taken->kind, "buckets");
    if (status == TAKE_SOLD_OUT)
        taken->available = fake.available;
    return status;
}

/* The stock policy of the tests' rows: reads, then writes; or takes in one statement. */
static enum take_status take_fake(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    rule(db == &fake_db && want->product_id == FAKE_PRODUCT && want->quantity == FAKE_QUANTITY,
         "another order's stock");
    rule(strcmp(want->updated_by, FAKE_INSTANCE) == 0, "stock taken in another name");
    rule(want->observer == fake.placing->observer, "the policy has another observer");
    rule(fake.placing->strategy->fencing == FENCE_NONE
             ? !want->fence.service
             : strcmp(want->fence.service, "fake server") == 0 && want->fence.token == fake.fence,
         "the policy has another fence");
    rule(ret_taken->seen == STOCK_UNSEEN && ret_taken->available == STOCK_UNSEEN && !ret_taken->xid[0],
         "the try begins with what the last one saw");
    enum take_status status = take_result(tx_call(fake.guarded ? "take" : "read"), ret_taken);
    if (status != TAKE_OK)
        return status;
    if (!fake.guarded) {
        ret_taken->seen = FAKE_SEEN;
        report_step(want->observer, STEP_READ, FAKE_SEEN);
        if (fake.checked && !want->still_held(want->holder))
            return TAKE_LOCK_LOST;
        if (fake.checked)
            report_step(want->observer, STEP_CHECK, STEP_NO_VALUE);
        status = take_result(tx_call("write"), ret_taken);
        if (status != TAKE_OK)
            return status;
    }
    report_step(want->observer, fake.guarded ? STEP_TAKE : STEP_WRITE, FAKE_SEEN - FAKE_QUANTITY);
    ret_taken->epoch = FAKE_EPOCH;
    fake_xid(ret_taken->xid, sizeof ret_taken->xid);
    return TAKE_OK;
}

static const struct stock_policy FAKE_POLICY = {.take = take_fake, .name = "fake"};

enum db_status fence_register(struct db *db, int64_t product_id, const struct fence *fence,
                              int64_t *ret_stored, bool *ret_registered)
{
    rule(db == &fake_db && product_id == FAKE_PRODUCT, "another product's fence");
    rule(strcmp(fence->service, "fake server") == 0 && fence->token == fake.fence, "another fence");
    rule(fake.grants && !fake.tx_open, "a fence that is not committed by itself, under the lock");
    rule(fake.placing->strategy->fencing == FENCE_BEFORE_READ, "a fence that the strategy does not have");
    const char *result = db_call("fence");
    bool old = strcmp(result, "old") == 0, no_product = strcmp(result, "no-product") == 0;
    *ret_registered = strcmp(result, "ok") == 0;
    *ret_stored = no_product ? FENCE_NO_PRODUCT : fake.fence + (old ? 7 : 0);
    return old || no_product ? DB_OK : (enum db_status)meaning_of(db_results, result);
}

static void check_origin(const struct order_request *request, const struct order_origin *origin)
{
    rule(request == fake.placing->request, "another request");
    rule(strcmp(origin->strategy, fake.placing->strategy->name) == 0, "the order names another strategy");
    rule(strcmp(origin->instance, FAKE_INSTANCE) == 0, "the order names another instance");
}

static void fill_order(struct order *order)
{
    *order = (struct order){.id = 4712, .product_id = FAKE_PRODUCT, .quantity = FAKE_QUANTITY};
    fake_xid(order->xid, sizeof order->xid);
}

enum db_status orders_insert(struct db *db, const struct order_request *request,
                             const struct order_origin *origin, const struct stock_taken *taken,
                             struct order *ret_order)
{
    check_origin(request, origin);
    rule(taken->seen == (fake.guarded ? STOCK_UNSEEN : FAKE_SEEN), "an order for stock that was not taken");
    enum db_status status = (enum db_status)meaning_of(db_results, tx_call("insert"));
    if (status == DB_OK)
        fill_order(ret_order);
    return status;
}

/* It fails at once, as it also may; what fails with COMMIT is COMMIT's failure. */
enum db_status orders_insert_later(struct db *db, const struct stock_taken *taken,
                                   struct insert_later *insert)
{
    enum db_status status = orders_insert(db, insert->request, &insert->origin, taken, insert->order);
    if (status == DB_OK)
        report_step(insert->observer, STEP_INSERT, STEP_NO_VALUE);
    return status;
}

void order_known(const struct order_request *request, const struct order_origin *origin, int64_t seen,
                 struct order *ret_order)
{
    rule(false, "an order that was seen is looked for");
}

enum take_status orders_place_in_one(struct db *db, bool in_transaction, const struct order_request *request,
                                     const struct order_origin *origin, struct stock_taken *ret_taken,
                                     struct order *ret_order)
{
    check_origin(request, origin);
    rule(in_transaction == fake.tx_open, "one statement that is mistaken about its transaction");
    enum take_status status = take_result(in_transaction ? tx_call("one") : db_call("one"), ret_taken);
    if (status == TAKE_OK)
        fill_order(ret_order);
    return status;
}

enum db_status db_commit(struct db *db)
{
    rule(fake.tx_open, "a COMMIT without a transaction");
    rule(!fake.tx_failed, "a COMMIT after a failure");
    rule(fake.placing->strategy->span != SPAN_INSIDE_TX || !fake.grants,
         "a COMMIT before the inner lock is released");
    rule(!holds_outside() || fake.tx_count == 2 || fake.grants, "a COMMIT after the outer lock was released");
    fake.tx_open = false;
    return (enum db_status)meaning_of(db_results, db_call("commit"));
}

/* COMMIT is recorded when its result is read. */
static db_end_fn *fake_on_end;
static void *fake_end_context;

enum db_status db_end_later(struct db *db, const struct statement *statement, const char *const *values,
                            db_end_fn *on_end, void *context)
{
    rule(!statement && fake.tx_open && !fake.tx_failed, "the end of what is no transaction");
    rule(!fake.is_sent, "two ends");
    fake.is_sent = true;
    fake_on_end = on_end;
    fake_end_context = context;
    return DB_OK;
}

void db_finish(struct db *db)
{
    rule(fake.is_sent, "nothing is awaited");
    fake.is_sent = false;
    enum db_status status = db_commit(db);
    fake_on_end(fake_end_context, status, NULL);
}

void db_rollback(struct db *db)
{
    rule(fake.tx_open, "a ROLLBACK without a transaction");
    rule(fake.placing->strategy->span != SPAN_INSIDE_TX || !fake.grants,
         "a ROLLBACK before the inner lock is released");
    fake.tx_open = false;
    db_call("rollback");
}

static const struct db_session fake_session = {"4711", "just now", "this run"};

const struct db_session *db_session(const struct db *db)
{
    return &fake_session;
}

enum commit_fate commit_recovery(struct db *db, struct lost_commit *lost, int64_t until_us)
{
    char expected[24];
    const struct order *order = &lost->order;
    fake_xid(expected, sizeof expected);
    rule(strcmp(lost->xid, expected) == 0, "another transaction is settled");
    rule(strcmp(lost->session.pid, fake_session.pid) == 0, "settled for another server process");
    rule(order->id == 0 || strcmp(order->xid, expected) == 0, "settled by an order of another transaction");
    rule(until_us > fake.now_us && until_us <= fake.now_us + 5 * 1000000, "settling takes for ever");
    rule(!holds_outside() || fake.tx_count == 2 || fake.grants, "settled after the lock was released");
    const char *result = fake_call("settle");
    fake.given_back |= fake.giving && strcmp(result, "unknown") != 0 && strcmp(result, "rolled-back") != 0;
    fake.giving = false;
    db_set_deadline(db, until_us, until_us); /* as the real one does */
    int settled = meaning_of(settle_results, result);
    return settled < 0 ? COMMIT_COMMITTED : (enum commit_fate)settled;
}

enum db_status stock_available(struct db *db, int64_t product_id, int64_t *ret_available)
{
    rule(product_id == FAKE_PRODUCT, "a look at another product");
    rule(!fake.tx_open && !fake.grants, "a look inside a transaction or a lock");
    enum db_status status = (enum db_status)meaning_of(db_results, db_call("look"));
    if (status == DB_OK)
        *ret_available = fake.look_finds;
    return status;
}

const char *db_error(const struct db *db)
{
    return FAKE_DB_ERROR;
}

/* Without an Idempotency-Key it is another constraint that was violated. */
const char *db_error_constraint(const struct db *db)
{
    return fake.placing->request->idempotency_key && !fake.other_constraint ? "orders_idempotency_key"
                                                                            : "orders_pkey";
}

#endif
