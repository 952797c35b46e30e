/* A recording lock and a recording database in place of the real ones, for tests of the engine.
 *
 * It defines the functions of db/ that the engine calls, so one file of a program includes it. Calls are written in
 * lower case, steps that the engine reports in upper case: "ready acquire LOCK begin read READ … release UNLOCK".
 * A call that is to fail stands with its result: "commit=unknown settle=committed". Such a line is both what the
 * fakes answer and what is expected of the engine. Rules that hold for every order are checked at each call. */
#ifndef OVERSELL_TESTS_ENGINE_FAKES_H
#define OVERSELL_TESTS_ENGINE_FAKES_H

#include "tests/unit/shapes.h"
#include "tests/unit/unit.h"

#include "service/engine/unsold.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FAKE_PRODUCT = 7,
    FAKE_QUANTITY = 2,
    FAKE_SEEN = 12,
    FAKE_EPOCH = 77,
    FAKE_TRIES = 3,
    FAULTS_MAX = 3,
    CALLS_MAX = 200
};

static const char FAKE_INSTANCE[] = "instance under test";
static const char FAKE_DB_ERROR[] = "the database's words";
static const char FAKE_LOCK_ERROR[] = "the lock's words";

struct fault {
    int at; /* the how-manieth call, from 0 */
    const char *result;
};

struct recorded_call {
    const char *name;
    char result[20]; /* "ok", or how it failed */
};

static struct fake_shop {
    /* what is to come */
    const char *script; /* what is left of it; NULL: every call succeeds but for the faults */
    struct fault faults[FAULTS_MAX];
    int fault_count;
    int64_t fence;      /* the next grant's */
    int64_t available;  /* with sold-out: what the take says is left */
    int64_t look_finds; /* what stock_available finds */
    long random_value;
    int64_t pause_longer_us; /* as on a busy machine */
    bool guarded;            /* the policy is one guarded statement */
    bool checked;            /* the policy asks before it writes whether the lock is still held */
    bool crowded;            /* too many units are still to be given back */
    bool other_constraint;   /* "unique" is not about the Idempotency-Key */

    /* what has come */
    struct recorded_call calls[CALLS_MAX];
    int call_count;
    char log[8192];
    char broken[1024]; /* rules that were broken */
    int64_t now_us, paused_us, longest_pause_us;
    int pauses;
    int64_t lock_step_value;

    /* how it stands */
    struct placing *placing;
    int64_t deadline_us, lock_deadline_us;
    bool tx_open, tx_failed;
    int tx_count;
    int reserved;         /* places for units that are still to be given back */
    bool given_back;      /* the units that were taken */
    bool giving;          /* whether they are is to be settled */
    bool owed;            /* they are left to be given back later */
    unsigned long grants; /* bit set of those that are held */
    int grant_count;
} fake;

/* ---- time and chance: the engine's pauses pass at once ---------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    *ret_now = (struct timespec){.tv_sec = fake.now_us / 1000000, .tv_nsec = fake.now_us % 1000000 * 1000};
    return 0;
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
    int64_t us = (int64_t)pause->tv_sec * 1000000 + pause->tv_nsec / 1000;
    fake.now_us += us + fake.pause_longer_us;
    fake.paused_us += us;
    fake.longest_pause_us = us > fake.longest_pause_us ? us : fake.longest_pause_us;
    fake.pauses++;
    return 0;
}

long random(void)
{
    return fake.random_value;
}

/* ---- recording -------------------------------------------------------------------------------------- */

static void fake_append(char *to, size_t size, const char *text)
{
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s%s", used ? " " : "", text);
}

static void rule(bool kept, const char *text)
{
    if (kept)
        return;
    fake_append(fake.broken, sizeof fake.broken, text);
    fake_append(fake.broken, sizeof fake.broken, ";");
}

/* If the script goes on with NAME, moves past it; its result into RESULT. Off the script all calls succeed. */
static void follow_script(const char *name, char *result, size_t size)
{
    size_t length = strcspn(fake.script, " "), name_length = strcspn(fake.script, " =");
    if (name_length != strlen(name) || strncmp(fake.script, name, name_length) != 0) {
        fake.script = "";
        return;
    }
    if (length > name_length)
        snprintf(result, size, "%.*s", (int)(length - name_length - 1), fake.script + name_length + 1);
    fake.script += length + (fake.script[length] == ' ');
}

/* Records a call and returns how it is to end: "ok", or the name of a failure. */
static const char *fake_call(const char *name)
{
    static char spare[20];
    bool room = fake.call_count < CALLS_MAX;
    rule(room, "it goes on for ever");
    char *result = room ? fake.calls[fake.call_count].result : spare;
    snprintf(result, sizeof spare, "ok");
    if (fake.script)
        follow_script(name, result, sizeof spare);
    for (int i = 0; i < fake.fault_count; i++)
        if (fake.faults[i].at == fake.call_count)
            snprintf(result, sizeof spare, "%s", fake.faults[i].result);
    if (room)
        fake.calls[fake.call_count++].name = name;

    char word[60];
    bool ok = strcmp(result, "ok") == 0;
    snprintf(word, sizeof word, "%s%s%s", name, ok ? "" : "=", ok ? "" : result);
    fake_append(fake.log, sizeof fake.log, word);
    return result;
}

static void fake_on_step(struct observer *self, enum step step, int64_t value)
{
    char name[40], unused[20];
    snprintf(name, sizeof name, "%s", step_name(step));
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    fake_append(fake.log, sizeof fake.log, name);
    if (fake.script)
        follow_script(name, unused, sizeof unused);
    if (step == STEP_LOCK)
        fake.lock_step_value = value;
}

static struct observer fake_observer = {.on_step = fake_on_step};

/* ---- the names of results --------------------------------------------------------------------------- */

struct meaning {
    const char *name;
    int value;
};

static const struct meaning db_results[] = {
    {"ok", DB_OK},
    {"serialization", DB_SERIALIZATION},
    {"deadlock", DB_DEADLOCK},
    {"lock-timeout", DB_LOCK_TIMEOUT},
    {"timeout", DB_TIMEOUT},
    {"unique", DB_UNIQUE},
    {"check", DB_CHECK},
    {"foreign-key", DB_FOREIGN_KEY},
    {"out-of-range", DB_OUT_OF_RANGE},
    {"away", DB_AWAY},
    {"refused", DB_REFUSED},
    {"unknown", DB_UNKNOWN},
    {"error", DB_ERROR},
    {NULL, -1},
};
static const struct meaning take_results[] = {
    {"ok", TAKE_OK},
    {"no-product", TAKE_NO_PRODUCT},
    {"wrong-kind", TAKE_WRONG_KIND},
    {"sold-out", TAKE_SOLD_OUT},
    {"busy", TAKE_BUSY},
    {"conflict", TAKE_CONFLICT},
    {"lock-lost", TAKE_LOCK_LOST},
    {NULL, TAKE_FAILED},
};
static const struct meaning key_results[] = {
    {"ok", KEY_NEW}, {"replay", KEY_REPLAY}, {"mismatch", KEY_MISMATCH}, {"in-progress", KEY_IN_PROGRESS},
    {NULL, -1},
};
static const struct meaning lock_results[] = {
    {"ok", LOCK_OK},
    {"busy", LOCK_TIMED_OUT},
    {"lost", LOCK_LOST},
    {"not-owner", LOCK_NOT_OWNER},
    {"away", LOCK_AWAY},
    {"refused", LOCK_REFUSED},
    {"unavailable", LOCK_UNAVAILABLE},
    {"failed", LOCK_FAILED},
    {NULL, -1},
};
static const struct meaning settle_results[] = {
    {"committed", COMMIT_COMMITTED},
    {"rolled-back", COMMIT_ROLLED_BACK},
    {"unknown", COMMIT_UNKNOWN},
    {"forgotten", COMMIT_FORGOTTEN},
    {NULL, -1},
};

static int meaning_of(const struct meaning *meanings, const char *name)
{
    while (meanings->name && strcmp(meanings->name, name) != 0)
        meanings++;
    return meanings->value;
}

/* ---- the database ----------------------------------------------------------------------------------- */

struct db {
    int nothing;
};
static struct db fake_db;

static bool holds_outside(void)
{
    return fake.placing->strategy->span == SPAN_AROUND_TX ||
           fake.placing->strategy->span == SPAN_AROUND_TWICE;
}

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

enum commit_fate commit_recovery(struct db *db, const struct lost_commit *lost, int64_t until_us)
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

/* ---- giving back what was taken and not sold ---------------------------------------------------------- */

enum db_status stock_give_back(struct db *db, int64_t product_id, int64_t epoch, int64_t quantity,
                               const char *updated_by, char ret_xid[static 24])
{
    rule(db == &fake_db && product_id == FAKE_PRODUCT && quantity == FAKE_QUANTITY,
         "other units are given back");
    rule(epoch == FAKE_EPOCH, "units are given back to another stock");
    rule(strcmp(updated_by, FAKE_INSTANCE) == 0, "units given back in another name");
    rule(!fake.tx_open && fake.grants, "units are given back in a transaction, or without the lock");
    rule(fake.deadline_us > fake.now_us && fake.deadline_us <= fake.now_us + 5 * 1000000,
         "giving back has no time, or takes for ever");
    rule(!fake.given_back, "units are given back twice");
    fake.tx_count++;
    const char *result = fake_call("give");
    fake_xid(ret_xid, 24);
    fake.given_back = strcmp(result, "ok") == 0;
    fake.giving = strcmp(result, "unknown") == 0;
    return (enum db_status)meaning_of(db_results, result);
}

struct unsold_list {
    int nothing;
};
static struct unsold_list fake_list;
static struct unsold_list *fake_unsold = &fake_list;

bool unsold_list_reserve(struct unsold_list *list)
{
    rule(list == &fake_list && fake.reserved == 0, "a second place is reserved");
    fake.reserved++;
    return !fake.crowded;
}

void unsold_list_end(struct unsold_list *list, const struct unsold *unsold)
{
    static const char *const opens[] = {"units", "take", "order", "give"};
    rule(list == &fake_list && fake.reserved == 1 && !fake.crowded, "a place is used that was not reserved");
    fake.reserved--;
    if (!unsold)
        return;
    rule(unsold->product_id == FAKE_PRODUCT && unsold->quantity == FAKE_QUANTITY &&
             unsold->epoch == FAKE_EPOCH,
         "other units are left to be given back");
    rule(!fake.given_back, "units are left that were given back");
    fake_append(fake.log, sizeof fake.log, "owe-");
    snprintf(fake.log + strlen(fake.log), sizeof fake.log - strlen(fake.log), "%s", opens[unsold->open]);
    fake.owed = true;
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

/* ---- the lock --------------------------------------------------------------------------------------- */

static enum lock_status fake_acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                     struct lock_grant *ret_grant)
{
    const struct placing *p = fake.placing;
    rule(lock == p->lock, "another lock");
    rule(strcmp(key, "product:7") == 0, "another product's lock");
    bool gives_back = fake.tx_count >= 2; /* also past the deadlines, within a separate time */
    rule(gives_back || deadline_us <= p->lock_deadline_us,
         "the wait for the lock is longer than the lock's deadline");
    rule(gives_back || deadline_us <= p->deadline_us,
         "the wait for the lock is longer than the order's deadline");
    rule(gives_back ? deadline_us > fake.now_us && deadline_us <= fake.now_us + 5 * 1000000
                    : deadline_us == p->lock_deadline_us || deadline_us == p->deadline_us,
         "the wait for the lock is cut short");
    rule(lock->observer == p->observer, "the lock has another observer");
    bool first = fake.grants == 0;
    rule(first || p->strategy->span == SPAN_AROUND_TWICE, "a lock that is held is taken again");
    rule(fake.tx_open == (p->strategy->span == SPAN_INSIDE_TX || !first),
         "the lock is taken on the wrong side of BEGIN");
    rule(!fake.tx_failed || !fake.tx_open, "a lock is taken after a failure");

    enum lock_status status = (enum lock_status)meaning_of(lock_results, fake_call("acquire"));
    memset(ret_grant, 0xee, sizeof *ret_grant); /* not to be looked at when it failed */
    if (status != LOCK_OK) {
        snprintf(lock->error, sizeof lock->error, "%s", FAKE_LOCK_ERROR);
        fake.tx_failed = true;
        return status;
    }
    *ret_grant = (struct lock_grant){.fence = fake.fence, .lease_end_us = INT64_MAX};
    snprintf(ret_grant->key, sizeof ret_grant->key, "%s", key);
    snprintf(ret_grant->token, sizeof ret_grant->token, "%d", fake.grant_count);
    fake.grants |= 1ul << fake.grant_count++;
    return LOCK_OK;
}

/* Its number, or -1. */
static long held_grant(const struct lock_grant *grant)
{
    char *end;
    long number = strtol(grant->token, &end, 10);
    bool ours = end > grant->token && !*end && number >= 0 && number < 64 && (fake.grants & 1ul << number);
    return ours ? number : -1;
}

static enum lock_status fake_release(struct lock *lock, struct lock_grant *grant)
{
    long number = held_grant(grant);
    bool ours = number >= 0;
    rule(lock == fake.placing->lock, "another lock is released");
    rule(ours, "a lock is released that is not held");
    rule(!holds_outside() || !fake.tx_open, "the outer lock is released before the transaction has ended");
    rule(fake.placing->strategy->span != SPAN_INSIDE_TX || fake.tx_open,
         "the inner lock is released after the transaction");
    if (ours)
        fake.grants &= ~(1ul << number);
    memset(grant, 0xee, sizeof *grant); /* spent */
    return (enum lock_status)meaning_of(lock_results, fake_call("release"));
}

static enum lock_status fake_still_held(struct lock *lock, const struct lock_grant *grant)
{
    rule(lock == fake.placing->lock && held_grant(grant) >= 0, "another lock is asked for");
    return (enum lock_status)meaning_of(lock_results, fake_call("held"));
}

static enum lock_status fake_raise_fence(struct lock *lock, const char *key, int64_t fence)
{
    rule(lock == fake.placing->lock && strcmp(key, "product:7") == 0, "another lock's counter is raised");
    rule(fence == fake.fence + 7, "the counter is not raised to what was registered");
    return (enum lock_status)meaning_of(lock_results, fake_call("raise"));
}

static const struct lock_server fake_server = {.name = "fake server"};
static const struct lock_driver fake_driver = {.name = "fake",
                                               .server = &fake_server,
                                               .acquire = fake_acquire,
                                               .release = fake_release,
                                               .still_held = fake_still_held,
                                               .raise_fence = fake_raise_fence};
static struct lock fake_lock = {.driver = &fake_driver};

/* ---- running an order ------------------------------------------------------------------------------- */

static struct strategy strategy_of(const struct shape *shape)
{
    return (struct strategy){
        .name = shape->name,
        .span = shape->span,
        .lock = shape->span == SPAN_NONE ? NULL : &fake_driver,
        .scope = shape->scope,
        .fencing = shape->fencing,
        .isolation = shape->tries_again ? DB_SERIALIZABLE : DB_READ_COMMITTED,
        .take_stock = shape->place ? &take_while_placing : &FAKE_POLICY,
        .max_tries = shape->tries_again ? FAKE_TRIES : 1,
        .place = shape->place,
    };
}

/* An order of the tests, before it is placed: as much rubbish as may be in what create_order has to set. */
struct fake_order {
    struct strategy strategy;
    struct order_request request;
    struct placing placing;
};

/* Forgets the last order, and sets up one of this shape; the fakes' results may be changed before fake_place. */
static void fake_prepare(struct fake_order *order, const struct shape *shape, bool keyed, bool observed)
{
    fake = (struct fake_shop){.now_us = 1000 * 1000000ll,
                              .available = 1,
                              .look_finds = 1,
                              .random_value = 99991,
                              .lock_step_value = STEP_NO_VALUE};
    fake_lock.observer = NULL;
    fake_lock.error[0] = '\0';
    order->strategy = strategy_of(shape);
    order->request = (struct order_request){
        .product_id = FAKE_PRODUCT, .quantity = FAKE_QUANTITY, .idempotency_key = keyed ? "a key" : NULL};
    memset(&order->placing, 0xee, sizeof order->placing);
    order->placing.strategy = &order->strategy;
    order->placing.request = &order->request;
    order->placing.db = &fake_db;
    order->placing.lock = shape->span == SPAN_NONE ? NULL : &fake_lock;
    order->placing.observer = observed ? &fake_observer : NULL;
    order->placing.unsold = fake_unsold;
    order->placing.instance = FAKE_INSTANCE;
    order->placing.deadline_us = fake.now_us + 10 * 1000000;
    order->placing.lock_deadline_us = fake.now_us + 5 * 1000000;
    fake.placing = &order->placing;
}

/* Places it, and looks whether anything was left behind. */
static void fake_place(struct fake_order *order)
{
    create_order(&order->placing);
    const struct order_result *result = &order->placing.result;
    rule(!fake.tx_open, "a transaction is left open");
    rule(!fake.grants, "a lock is left held");
    rule(fake.reserved == 0 || fake.crowded, "a place is left reserved");
    rule(!result->lock_lost_after_commit || result->outcome == ORDER_CREATED,
         "lock_lost_after_commit is said of an order that does not stand");
    rule(result->tries >= 1 && result->tries <= order->strategy.max_tries,
         "more tries than the strategy has");
    rule(memchr(result->error, '\0', sizeof result->error) != NULL, "the error has no end");
}

#endif
