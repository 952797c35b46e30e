/* The engine: one order, step by step, as its strategy's row says. */
#include "service/engine/create_order.h"
#include "base/clock.h"

#include "service/engine/unsold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACK_OFF_FIRST_US = 500,   /* the first conflict: a random pause of up to this … */
    BACK_OFF_MAX_US = 20000,   /* … which doubles with each try, up to this */
    SETTLE_US = 2000 * 1000,   /* time past the deadline to resolve a lost COMMIT … */
    GIVE_BACK_US = 2000 * 1000 /* … and to give back units that were taken and not sold */
};

static enum outcome lock_outcome(struct placing *p, enum lock_status status)
{
    snprintf(p->result.error, sizeof p->result.error, "%s", p->lock->error);
    switch (status) {
    case LOCK_OK: return ORDER_GO_ON;
    case LOCK_TIMED_OUT: return ORDER_LOCK_TIMEOUT;
    case LOCK_LOST:
    case LOCK_NOT_OWNER: return ORDER_LOCK_LOST;
    case LOCK_AWAY:
    case LOCK_REFUSED:
    case LOCK_UNAVAILABLE:
        p->result.backend = p->lock->driver->server ? p->lock->driver->server->name : "lock";
        return ORDER_BACKEND_UNAVAILABLE;
    case LOCK_FAILED: break;
    }
    return ORDER_FAILED;
}

/* Takes the product's lock. With SPAN_AROUND_TWICE an order calls this twice, and holds two grants of a reentrant lock. */
static enum outcome lock(struct placing *p)
{
    char key[40];
    snprintf(key, sizeof key, "product:%lld", (long long)p->request->product_id);
    int64_t until_us = p->lock_deadline_us < p->deadline_us ? p->lock_deadline_us : p->deadline_us;
    enum lock_status status = lock_acquire(p->lock, key, until_us, &p->grants[p->held]);
    if (status != LOCK_OK)
        return lock_outcome(p, status);
    p->held++;
    if (p->held == 1)
        report_step(p->observer, STEP_LOCK, p->grants[0].fence ? p->grants[0].fence : STEP_NO_VALUE);
    return ORDER_GO_ON;
}

/* Registers the grant's token on the product's row, so that the row refuses every older holder. If the row has a newer
 * token already, the order fails. The cause may be a lock service that has lost its counter: raise_fence sets the counter
 * above the row's token, so the next order succeeds. */
static enum outcome register_fence(struct placing *p)
{
    struct fence fence = {p->lock->driver->server->name, p->grants[0].fence};
    int64_t stored = 0;
    bool registered = false;
    enum outcome outcome = outcome_of_db(
        p, fence_register(p->db, p->request->product_id, &fence, &stored, &registered));
    if (outcome != ORDER_GO_ON)
        return outcome;
    if (registered) {
        report_step(p->observer, STEP_FENCE, fence.token);
        return ORDER_GO_ON;
    }
    if (stored == FENCE_NO_PRODUCT)
        return ORDER_NO_SUCH_PRODUCT;
    report_step(p->observer, STEP_REFUSE, stored);
    snprintf(p->result.error, sizeof p->result.error, "token %lld came after %lld", (long long)fence.token,
             (long long)stored);
    if (p->lock->driver->raise_fence)
        (void)p->lock->driver->raise_fence(p->lock, p->grants[0].key,
                                           stored); /* the next order tries it again */
    return ORDER_LOCK_LOST;
}

/* Releases all that is held. A lock that was lost meanwhile does not undo an order that is committed. */
static void unlock(struct placing *p, enum outcome outcome)
{
    if (p->held == 0)
        return;
    int64_t was_ours = 1;
    while (p->held > 0) {
        enum lock_status status = lock_release(p->lock, &p->grants[--p->held]);
        if (status == LOCK_LOST || status == LOCK_NOT_OWNER)
            was_ours = 0;
        else if (status != LOCK_OK)
            was_ours = STEP_NO_VALUE;
        if (status != LOCK_OK && (outcome == ORDER_GO_ON || outcome == ORDER_CREATED))
            p->result.lock_lost_after_commit = true;
    }
    report_step(p->observer, STEP_UNLOCK, was_ours);
}

static bool still_held(void *holder)
{
    struct placing *p = holder;
    return p->lock->driver->still_held(p->lock, &p->grants[0]) == LOCK_OK;
}

static enum outcome take_stock(struct placing *p)
{
    struct stock_want want = {
        .product_id = p->request->product_id,
        .quantity = p->request->quantity,
        .updated_by = p->instance,
        .observer = p->observer,
        .later = p->together,
        .still_held = still_held,
        .holder = p,
    };
    if (p->strategy->fencing != FENCE_NONE)
        want.fence = (struct fence){p->lock->driver->server->name, p->grants[0].fence};
    enum outcome outcome = p->strategy->span == SPAN_AROUND_TWICE ? lock(p) : ORDER_GO_ON;
    if (outcome != ORDER_GO_ON)
        return outcome;
    return outcome_of_take(p, p->strategy->take_stock->take(p->db, &want, &p->taken));
}

static enum outcome insert_order(struct placing *p)
{
    struct order_origin origin = {p->strategy->name, p->instance};
    /* A lock that is released before COMMIT is released after the INSERT. */
    if (p->together && p->strategy->span != SPAN_INSIDE_TX && p->strategy->scope == SCOPE_ONE_TX) {
        p->insert = (struct insert_later){
            .request = p->request, .origin = origin, .observer = p->observer, .order = &p->result.order};
        return outcome_of_db(p, orders_insert_later(p->db, &p->taken, &p->insert));
    }
    enum db_status status = orders_insert(p->db, p->request, &origin, &p->taken, &p->result.order);
    if (status == DB_OK)
        report_step(p->observer, STEP_INSERT, STEP_NO_VALUE);
    return outcome_of_db(p, status);
}

/* The steps that all strategies share: the whole order, or the first of two transactions. */
static enum outcome place_first(struct placing *p)
{
    const struct strategy *s = p->strategy;
    bool around = s->span == SPAN_AROUND_TX || s->span == SPAN_AROUND_TWICE;
    bool two = s->scope == SCOPE_TWO_TX;

    enum outcome outcome = around ? lock(p) : ORDER_GO_ON;
    if (outcome != ORDER_GO_ON)
        return outcome;
    if (s->fencing == FENCE_BEFORE_READ && (outcome = register_fence(p)) != ORDER_GO_ON) {
        unlock(p, outcome);
        return outcome;
    }

    db_begin(p->db, s->isolation);
    outcome = claim_key(p);
    if (outcome == ORDER_GO_ON && s->span == SPAN_INSIDE_TX)
        outcome = lock(p);
    if (outcome == ORDER_GO_ON)
        outcome = take_stock(p);
    if (outcome == ORDER_GO_ON && !two)
        outcome = insert_order(p);
    if (s->span == SPAN_INSIDE_TX)
        unlock(p, outcome);
    outcome = end_transaction(p, outcome, two ? STEP_COMMIT_STOCK : STEP_COMMIT, p->taken.xid);
    if (around)
        unlock(p, outcome);
    return outcome;
}

/* The second of two transactions: inserts the order, whose stock is already committed. */
static enum outcome place_second(struct placing *p)
{
    db_begin(p->db, p->strategy->isolation);
    enum outcome outcome = insert_order(p);
    return end_transaction(p, outcome, STEP_COMMIT_ORDER, p->result.order.xid);
}

/* Gives back units that were taken, or may have been taken, but not sold. False: this has still to be done. */
static bool give_back(struct placing *p, struct unsold *unsold)
{
    if (unsold->open != OPEN_NONE) /* a commit without a reply: unsold_list.c settles it */
        return false;
    int64_t until_us = monotonic_us() + GIVE_BACK_US;
    bool done = unsold_give_back(unsold, p->db, p->lock, p->instance, until_us) != UNSOLD_OPEN;
    db_set_deadline(p->db, p->deadline_us, p->lock_deadline_us);
    return done;
}

/* An order that fails after its stock was committed gives the units back; only a crash of the process prevents this. */
static enum outcome place_in_two(struct placing *p)
{
    struct unsold unsold = {
        .strategy = p->strategy, .product_id = p->request->product_id, .quantity = p->request->quantity};
    if (p->unsold && !unsold_list_reserve(p->unsold))
        return ORDER_OVERLOADED;
    enum outcome outcome = place_first(p), taken = outcome;
    if (taken == ORDER_GO_ON)
        outcome = place_second(p);
    unsold.epoch = p->taken.epoch;
    if (outcome == ORDER_UNKNOWN) {
        unsold.open = taken == ORDER_UNKNOWN ? OPEN_TAKE : OPEN_ORDER;
        unsold.lost = p->lost;
    }
    bool owes = (taken == ORDER_GO_ON || taken == ORDER_UNKNOWN) && outcome != ORDER_CREATED &&
                !give_back(p, &unsold);
    if (p->unsold)
        unsold_list_end(p->unsold, owes ? &unsold : NULL);
    return outcome;
}

static enum outcome place_by_steps(struct placing *p)
{
    return p->strategy->scope == SCOPE_TWO_TX ? place_in_two(p) : place_first(p);
}

static enum outcome place_once(struct placing *p)
{
    return p->strategy->place ? p->strategy->place(p) : place_by_steps(p);
}

/* A random pause before the next try; false where the deadline comes first. */
static bool back_off(const struct placing *p, int tries)
{
    int64_t most_us = tries < 6 ? BACK_OFF_FIRST_US << tries : BACK_OFF_MAX_US;
    int64_t pause_us = random() % most_us;
    if (monotonic_us() + pause_us >= p->deadline_us)
        return false;
    pause_order(p->observer, pause_us);
    return true;
}

/* The statement that found too few may have failed with its transaction: looks once more. */
static void look_what_is_left(struct placing *p)
{
    if (p->result.available == STOCK_UNSEEN)
        (void)stock_available(p->db, p->request->product_id, &p->result.available);
}

/* An order whose time is over, as behind others in its batch, says nothing about the database. */
static enum outcome connect_in_time(struct placing *p)
{
    if (monotonic_us() < p->deadline_us)
        return outcome_of_db(p, db_ready(p->db));
    snprintf(p->result.error, sizeof p->result.error, "the deadline has passed");
    return ORDER_LOCK_TIMEOUT;
}

void create_order(struct placing *p)
{
    const struct strategy *s = p->strategy;
    p->result = (struct order_result){.available = STOCK_UNSEEN};
    p->held = 0;
    p->end = END_DONE;
    db_set_deadline(p->db, p->deadline_us, p->lock_deadline_us);
    if (p->lock) {
        p->lock->observer = p->observer;
    } else if (s->span != SPAN_NONE || s->fencing != FENCE_NONE) {
        snprintf(p->result.error, sizeof p->result.error, "the strategy %s has no lock here", s->name);
        p->result.outcome = ORDER_FAILED;
        return;
    }

    enum outcome outcome;
    for (int tries = 1;; tries++) {
        p->result.tries = tries;
        p->insert.order = NULL;
        p->result.order.id = 0; /* a try that failed may have left its id */
        p->taken = (struct stock_taken){.seen = STOCK_UNSEEN, .available = STOCK_UNSEEN};
        outcome = connect_in_time(p);
        if (outcome == ORDER_GO_ON)
            outcome = place_once(p);
        if (p->end != END_DONE)
            return;
        if (outcome == ORDER_BEHIND_FAILURE && p->on_done) {
            /* Orders before this one may have lost their COMMIT, and their sessions then hold the row: they are settled first. */
            p->result.outcome = outcome;
            p->end = END_OPEN;
            return;
        }
        if (outcome == ORDER_BEHIND_FAILURE) {
            tries--;
            continue;
        }
        if (outcome != ORDER_CONFLICT || tries >= s->max_tries || !back_off(p, tries))
            break;
    }
    if (outcome == ORDER_GO_ON) { /* a learner's way of placing may end without a COMMIT */
        db_rollback(p->db);
        snprintf(p->result.error, sizeof p->result.error, "the order's way of placing ended without COMMIT");
        outcome = ORDER_FAILED;
    }
    if (outcome == ORDER_SOLD_OUT)
        look_what_is_left(p);
    p->result.lock_lost_after_commit &= outcome == ORDER_CREATED;
    p->result.outcome = outcome;
}

enum outcome outcome_of_claim(enum key_claim claim)
{
    switch (claim) {
    case KEY_NEW: return ORDER_GO_ON;
    case KEY_REPLAY: return ORDER_REPLAYED;
    case KEY_MISMATCH: return ORDER_KEY_MISMATCH;
    case KEY_IN_PROGRESS: return ORDER_KEY_IN_USE;
    }
    return ORDER_FAILED;
}

enum outcome claim_key(struct placing *p)
{
    if (!p->request->idempotency_key)
        return ORDER_GO_ON;
    enum key_claim claim = KEY_NEW;
    enum db_status status = orders_claim_key(p->db, p->request, &claim, &p->result.order);
    if (status != DB_OK)
        return outcome_of_db(p, status);
    return outcome_of_claim(claim);
}

/* Notes what commit_recovery has to know of a COMMIT without a reply; before the connection is used again. */
static void note_lost(struct placing *p, const char *xid)
{
    p->lost = (struct lost_commit){.session = *db_session(p->db), .order = p->result.order};
    if (p->insert.order)
        p->lost.unseen_order_of = p->instance;
    snprintf(p->lost.xid, sizeof p->lost.xid, "%s", xid);
}

/* Finds out what became of a COMMIT without a reply. */
static enum db_status settle(struct placing *p)
{
    enum commit_fate fate = p->lost.xid[0] ? commit_recovery(p->db, &p->lost, monotonic_us() + SETTLE_US)
                                           : COMMIT_UNKNOWN;
    db_set_deadline(p->db, p->deadline_us, p->lock_deadline_us);
    if (fate == COMMIT_COMMITTED && p->insert.order && p->result.order.id == 0) {
        order_known(p->request, &p->insert.origin, p->insert.seen, &p->lost.order);
        p->result.order = p->lost.order;
    }
    return fate == COMMIT_COMMITTED ? DB_OK : fate == COMMIT_ROLLED_BACK ? DB_AWAY : DB_UNKNOWN;
}

static void end_created(struct placing *p)
{
    report_step(p->observer, STEP_COMMIT, STEP_NO_VALUE);
    p->result.outcome = ORDER_CREATED;
}

/* What is left to do needs the connection. */
static bool is_open(const struct placing *p)
{
    enum outcome outcome = p->result.outcome;
    return outcome == ORDER_UNKNOWN || outcome == ORDER_BEHIND_FAILURE ||
           (outcome == ORDER_SOLD_OUT && p->result.available == STOCK_UNSEEN);
}

/* ROWS: of the one statement; none of COMMIT. */
static void on_end(void *context, enum db_status status, const PGresult *rows)
{
    struct placing *p = context;
    if (status == DB_UNKNOWN)
        note_lost(p, p->end_xid);
    p->result.outcome = outcome_of_db(p, status);
    if (status == DB_OK && p->strategy->place && rows && PQnfields(rows) > 0) {
        struct order_origin origin = {p->strategy->name, p->instance};
        p->result.outcome = outcome_of_take(
            p, order_placed(rows, p->request, &origin, &p->taken, &p->result.order));
    }
    if (p->result.outcome == ORDER_GO_ON)
        end_created(p);
    p->end = is_open(p) ? END_OPEN : END_DONE;
    if (p->end == END_DONE)
        p->on_done(p);
}

enum outcome end_later(struct placing *p, const struct statement *statement, const char *const *values,
                       const char *xid)
{
    snprintf(p->end_xid, sizeof p->end_xid, "%s", xid);
    p->end = END_SENT;
    enum db_status status = db_end_later(p->db, statement, values, on_end, p);
    if (status == DB_OK)
        return ORDER_GO_ON;
    p->end = END_DONE;
    return outcome_of_db(p, status);
}

enum outcome end_transaction(struct placing *p, enum outcome outcome, enum step step, const char *xid)
{
    if (outcome != ORDER_GO_ON) {
        db_rollback(p->db);
        return outcome;
    }
    if (p->on_done && step == STEP_COMMIT)
        return end_later(p, NULL, NULL, xid);
    enum db_status status = db_commit(p->db);
    if (status == DB_UNKNOWN) {
        note_lost(p, xid);
        status = settle(p);
    }
    if (status != DB_OK)
        return outcome_of_db(p, status);
    report_step(p->observer, step, STEP_NO_VALUE);
    return step == STEP_COMMIT_STOCK ? ORDER_GO_ON : ORDER_CREATED;
}

void order_settle(struct placing *p)
{
    if (p->end == END_SENT)
        db_finish(p->db);
    if (p->end != END_OPEN)
        return;
    p->end = END_DONE;
    if (p->result.outcome == ORDER_BEHIND_FAILURE) { /* begins again, and is waited for */
        p->on_done = NULL;
        create_order(p);
    } else if (p->result.outcome == ORDER_UNKNOWN) {
        enum db_status status = settle(p);
        if (status == DB_OK)
            end_created(p);
        else
            p->result.outcome = outcome_of_db(p, status);
    } else {
        db_set_deadline(p->db, p->deadline_us, p->lock_deadline_us);
        look_what_is_left(p);
    }
}

enum outcome outcome_of_db(struct placing *p, enum db_status status)
{
    if (status == DB_OK)
        return ORDER_GO_ON;
    snprintf(p->result.error, sizeof p->result.error, "%s", db_error(p->db));
    switch (status) {
    case DB_SERIALIZATION:
    case DB_DEADLOCK: return ORDER_CONFLICT;
    case DB_BEHIND_FAILURE: return ORDER_BEHIND_FAILURE;
    case DB_LOCK_TIMEOUT:
    case DB_TIMEOUT: return ORDER_LOCK_TIMEOUT;
    case DB_UNIQUE: /* the same Idempotency-Key was committed since we looked */
        return strcmp(db_error_constraint(p->db), "orders_idempotency_key") == 0 ? ORDER_KEY_IN_USE
                                                                                 : ORDER_FAILED;
    case DB_AWAY:
    case DB_REFUSED: p->result.backend = "postgresql"; return ORDER_BACKEND_UNAVAILABLE;
    case DB_UNKNOWN: return ORDER_UNKNOWN;
    default: return ORDER_FAILED;
    }
}

enum outcome outcome_of_take(struct placing *p, enum take_status status)
{
    p->result.available = p->taken.available;
    memcpy(p->result.kind, p->taken.kind, sizeof p->result.kind);
    switch (status) {
    case TAKE_OK: return ORDER_GO_ON;
    case TAKE_NO_PRODUCT: return ORDER_NO_SUCH_PRODUCT;
    case TAKE_WRONG_KIND: return ORDER_WRONG_STOCK_KIND;
    case TAKE_SOLD_OUT: return ORDER_SOLD_OUT;
    case TAKE_BUSY:
        snprintf(p->result.error, sizeof p->result.error, "enough are left, but others hold them");
        return ORDER_LOCK_TIMEOUT;
    case TAKE_CONFLICT: return ORDER_CONFLICT;
    case TAKE_LOCK_LOST:
        snprintf(p->result.error, sizeof p->result.error, "the lock had ended before the write");
        return ORDER_LOCK_LOST;
    case TAKE_FAILED: break;
    }
    return outcome_of_db(p, p->taken.db_status);
}
