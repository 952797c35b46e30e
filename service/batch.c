/* Many orders of one product in one transaction: its row is locked once and written once, and one flush to disk commits
 * all of them. First come, first served: each sees what those before it have left. */
#include "service/batch.h"

#include <stdio.h>
#include <string.h>

/* An order's outcome, while the batch is under way, is CREATED as long as nothing speaks against it. */
static bool goes_on(const struct placing *p)
{
    return p->result.outcome == CREATED;
}

static bool some_go_on(struct placing *const *orders, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (goes_on(orders[i]))
            return true;
    return false;
}

static void report_all(struct placing *const *orders, size_t count, enum step step, int64_t value)
{
    for (size_t i = 0; i < count; i++)
        if (goes_on(orders[i]))
            report_step(orders[i]->observer, step, value);
}

/* Of two orders that have the same key, the second finds it in use, as it would beside the batch. */
static bool key_is_taken(const struct order_draft *drafts, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(drafts[i].request->idempotency_key, key) == 0)
            return true;
    return false;
}

static enum outcome claim_keys(struct placing *const *orders, size_t count)
{
    struct order_draft drafts[BATCH_MAX];
    struct placing *keyed[BATCH_MAX];
    size_t keys = 0;
    for (size_t i = 0; i < count; i++) {
        struct placing *p = orders[i];
        if (!p->request->idempotency_key)
            continue;
        if (key_is_taken(drafts, keys, p->request->idempotency_key)) {
            p->result.outcome = KEY_IN_USE;
            continue;
        }
        keyed[keys] = p;
        drafts[keys++] = (struct order_draft){.request = p->request, .order = &p->result.order};
    }
    if (keys == 0)
        return CREATED;
    enum db_status status = orders_claim_keys(orders[0]->db, drafts, keys);
    for (size_t i = 0; status == DB_OK && i < keys; i++)
        keyed[i]->result.outcome = outcome_of_claim(drafts[i].claim);
    return outcome_of_db(orders[0], status);
}

/* Locks the row and reads it. Where that tells against one order of the product, it does against all. */
static enum outcome read_stock(struct placing *const *orders, size_t count)
{
    struct placing *lead = orders[0];
    enum take_status status = stock_lock(lead->db, lead->request->product_id, &lead->taken);
    enum outcome outcome = outcome_of_take(lead, status);
    if (outcome == CREATED)
        report_all(orders, count, STEP_READ, lead->taken.seen);
    if (status == TAKE_OK || status == TAKE_FAILED)
        return outcome;
    for (size_t i = 0; i < count; i++)
        if (goes_on(orders[i])) {
            orders[i]->result.outcome = outcome;
            memcpy(orders[i]->result.kind, lead->result.kind, sizeof lead->result.kind);
        }
    return CREATED;
}

/* Those that get what they want, in the order of their arrival. */
struct fit {
    struct placing *orders[BATCH_MAX];
    struct order_draft drafts[BATCH_MAX];
    size_t count;
    int64_t left;
};

/* Who asks for more than those before have left is sold out; a smaller order behind may still fit. */
static void find_fit(struct placing *const *orders, size_t count, struct fit *ret_fit)
{
    ret_fit->count = 0;
    ret_fit->left = orders[0]->taken.seen;
    for (size_t i = 0; i < count; i++) {
        struct placing *p = orders[i];
        if (!goes_on(p))
            continue;
        if (p->request->quantity > ret_fit->left) {
            p->result.outcome = SOLD_OUT;
            p->result.available = ret_fit->left;
            continue;
        }
        ret_fit->orders[ret_fit->count] = p;
        ret_fit->drafts[ret_fit->count++] = (struct order_draft){
            .request = p->request, .order = &p->result.order, .seen = ret_fit->left};
        ret_fit->left -= p->request->quantity;
    }
}

static enum outcome write_orders(struct fit *fit, const struct stock_taken *taken)
{
    struct placing *first = fit->orders[0];
    struct order_origin origin = {first->strategy->name, first->instance};
    enum db_status status = orders_insert_batch(first->db, fit->drafts, fit->count, &origin, taken,
                                                fit->left);
    if (status == DB_OK) {
        report_all(fit->orders, fit->count, STEP_WRITE, fit->left);
        report_all(fit->orders, fit->count, STEP_INSERT, STEP_NO_VALUE);
    }
    return outcome_of_db(first, status);
}

/* CREATED: every order has its own outcome. Else what has become of the transaction and of those that go on in it. */
static enum outcome place_together(struct placing *const *orders, size_t count)
{
    struct placing *lead = orders[0];
    for (size_t i = 0; i < count; i++)
        orders[i]->result = (struct order_result){.outcome = CREATED, .tries = 1, .available = STOCK_UNSEEN};
    lead->taken = (struct stock_taken){.seen = STOCK_UNSEEN, .available = STOCK_UNSEEN};

    struct fit fit = {.count = 0};
    db_begin(lead->db, lead->strategy->isolation);
    enum outcome outcome = claim_keys(orders, count);
    if (outcome == CREATED && some_go_on(orders, count))
        outcome = read_stock(orders, count);
    if (outcome == CREATED)
        find_fit(orders, count, &fit);
    if (outcome == CREATED && fit.count > 0)
        outcome = write_orders(&fit, &lead->taken);
    if (outcome != CREATED || fit.count == 0) {
        db_rollback(lead->db);
        return outcome;
    }
    outcome = end_transaction(fit.orders[0], CREATED, STEP_COMMIT, fit.drafts[0].order->xid);
    if (outcome == CREATED)
        report_all(fit.orders + 1, fit.count - 1, STEP_COMMIT, STEP_NO_VALUE);
    return outcome;
}

enum outcome place_in_batch(struct placing *p)
{
    enum outcome outcome = place_together(&p, 1);
    return outcome == CREATED ? p->result.outcome : outcome;
}

/* The transaction was lost. Who was sold out beside the others might have been served without them. */
static void lose(struct placing *p, enum outcome outcome)
{
    if (goes_on(p))
        p->result.outcome = outcome;
    else if (p->result.outcome == SOLD_OUT)
        p->result.outcome = BACKEND_AWAY;
    p->result.backend = "postgresql";
}

void create_batch(struct placing *const *orders, size_t count)
{
    struct placing *lead = orders[0];
    enum outcome outcome = CONFLICT; /* one alone needs no company */
    if (count > 1) {
        db_set_deadline(lead->db, lead->deadline_us, lead->lock_deadline_us); /* of all, the first to end */
        outcome = outcome_of_db(lead, db_ready(lead->db));
        if (outcome == CREATED)
            outcome = place_together(orders, count);
    }
    if (outcome == CREATED)
        return;
    bool lost = outcome == BACKEND_AWAY || outcome == UNKNOWN;
    for (size_t i = 0; i < count; i++)
        if (lost)
            lose(orders[i], outcome);
        else
            create_order(orders[i]); /* what one of them has caused must not be the others' */
}
