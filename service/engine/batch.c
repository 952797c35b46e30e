/* Places many orders of one product in one transaction, which locks and writes the product's row once, and which one flush to
 * disk commits. First come, first served: each order sees what the orders before it have left. */
#include "service/engine/batch.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* Until the batch ends, an order that nothing has refused has the outcome ORDER_GO_ON. */
static bool goes_on(const struct placing *p)
{
    return p->result.outcome == ORDER_GO_ON;
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

/* Of two orders with the same key, the second finds the key in use, as it would if they were not in one batch. */
static bool key_is_taken(const struct order_draft *drafts, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(drafts[i].request->idempotency_key, key) == 0)
            return true;
    return false;
}

static enum outcome claim_keys(struct placing *const *orders, size_t count)
{
    struct order_draft drafts[ORDER_BATCH_MAX];
    struct placing *keyed[ORDER_BATCH_MAX];
    size_t keys = 0;
    for (size_t i = 0; i < count; i++) {
        struct placing *p = orders[i];
        if (!p->request->idempotency_key)
            continue;
        if (key_is_taken(drafts, keys, p->request->idempotency_key)) {
            p->result.outcome = ORDER_KEY_IN_USE;
            continue;
        }
        keyed[keys] = p;
        drafts[keys++] = (struct order_draft){.request = p->request, .order = &p->result.order};
    }
    if (keys == 0)
        return ORDER_GO_ON;
    enum db_status status = orders_claim_keys(orders[0]->db, drafts, keys);
    for (size_t i = 0; status == DB_OK && i < keys; i++)
        keyed[i]->result.outcome = outcome_of_claim(drafts[i].claim);
    return outcome_of_db(orders[0], status);
}

/* Locks the row and reads it. What refuses one order here (no such product, wrong kind of stock) refuses all of them. */
static enum outcome read_stock(struct placing *const *orders, size_t count)
{
    struct placing *lead = orders[0];
    enum take_status status = stock_lock(lead->db, lead->request->product_id, &lead->taken);
    enum outcome outcome = outcome_of_take(lead, status);
    if (outcome == ORDER_GO_ON)
        report_all(orders, count, STEP_READ, lead->taken.seen);
    if (status == TAKE_OK || status == TAKE_FAILED)
        return outcome;
    char kind[sizeof lead->result.kind];
    memcpy(kind, lead->result.kind, sizeof kind);
    for (size_t i = 0; i < count; i++)
        if (goes_on(orders[i])) {
            orders[i]->result.outcome = outcome;
            memcpy(orders[i]->result.kind, kind, sizeof kind);
        }
    return ORDER_GO_ON;
}

/* The orders for which the stock suffices, first come first. */
struct fit {
    struct placing *orders[ORDER_BATCH_MAX];
    struct order_draft drafts[ORDER_BATCH_MAX];
    size_t count;
    int64_t left;
};

/* An order for more than the orders before it have left is sold out. A smaller order behind it may still fit. */
static void find_fit(struct placing *const *orders, size_t count, struct fit *ret_fit)
{
    ret_fit->count = 0;
    ret_fit->left = orders[0]->taken.seen;
    for (size_t i = 0; i < count; i++) {
        struct placing *p = orders[i];
        if (!goes_on(p))
            continue;
        if (p->request->quantity > ret_fit->left) {
            p->result.outcome = ORDER_SOLD_OUT;
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

static struct order_result fresh_result(int tries)
{
    return (struct order_result){.outcome = ORDER_GO_ON, .tries = tries, .available = STOCK_UNSEEN};
}

/* Runs one transaction for all orders. ORDER_GO_ON: each order has its own outcome. Any other value is the outcome of the
 * transaction, and the first order's result has the error. */
static enum outcome place_together(struct placing *const *orders, size_t count)
{
    struct placing *lead = orders[0];
    lead->taken = (struct stock_taken){.seen = STOCK_UNSEEN, .available = STOCK_UNSEEN};

    struct fit fit = {.count = 0};
    db_begin(lead->db, lead->strategy->isolation);
    enum outcome outcome = claim_keys(orders, count);
    if (outcome == ORDER_GO_ON && some_go_on(orders, count))
        outcome = read_stock(orders, count);
    if (outcome == ORDER_GO_ON)
        find_fit(orders, count, &fit);
    if (outcome == ORDER_GO_ON && fit.count > 0)
        outcome = write_orders(&fit, &lead->taken);
    if (outcome != ORDER_GO_ON || fit.count == 0) {
        db_rollback(lead->db);
    } else {
        outcome = end_transaction(fit.orders[0], ORDER_GO_ON, STEP_COMMIT, fit.drafts[0].order->xid);
        if (outcome == ORDER_CREATED) {
            report_all(fit.orders + 1, fit.count - 1, STEP_COMMIT, STEP_NO_VALUE);
            for (size_t i = 0; i < fit.count; i++)
                fit.orders[i]->result.outcome = ORDER_CREATED;
            outcome = ORDER_GO_ON;
        }
    }
    if (outcome != ORDER_GO_ON)
        snprintf(lead->result.error, sizeof lead->result.error, "%s", db_error(lead->db));
    return outcome;
}

enum outcome place_in_batch(struct placing *p)
{
    p->result = fresh_result(p->result.tries);
    enum outcome outcome = place_together(&p, 1);
    return outcome == ORDER_GO_ON ? p->result.outcome : outcome;
}

static int64_t wait_end(const struct placing *p)
{
    return p->lock_deadline_us < p->deadline_us ? p->lock_deadline_us : p->deadline_us;
}

/* Connects if there is no connection, and calls place_together. Every wait ends when the first order's wait must end. */
static enum outcome try_together(struct placing *const *orders, size_t count, int tries)
{
    struct placing *lead = orders[0];
    int64_t deadline_us = lead->deadline_us, wait_end_us = wait_end(lead);
    for (size_t i = 0; i < count; i++) {
        orders[i]->result = fresh_result(tries);
        deadline_us = orders[i]->deadline_us < deadline_us ? orders[i]->deadline_us : deadline_us;
        wait_end_us = wait_end(orders[i]) < wait_end_us ? wait_end(orders[i]) : wait_end_us;
    }
    db_set_deadline(lead->db, deadline_us, wait_end_us);
    enum outcome outcome = outcome_of_db(lead, db_ready(lead->db));
    return outcome == ORDER_GO_ON ? place_together(orders, count) : outcome;
}

/* The transaction has come to nothing. Does that leave the order without an answer? One that was sold out beside the
 * others might be served without them. */
static bool is_unanswered(const struct placing *p)
{
    return goes_on(p) || p->result.outcome == ORDER_SOLD_OUT;
}

/* Gives OUTCOME to all orders without an answer, because the connection was lost. */
static void lose_all(struct placing *const *orders, size_t count, enum outcome outcome)
{
    char error[sizeof orders[0]->result.error];
    memcpy(error, orders[0]->result.error, sizeof error);
    for (size_t i = 0; i < count; i++) {
        struct order_result *result = &orders[i]->result;
        if (!is_unanswered(orders[i]))
            continue;
        result->outcome = result->outcome == ORDER_SOLD_OUT ? ORDER_BACKEND_UNAVAILABLE : outcome;
        result->backend = "postgresql";
        memcpy(result->error, error, sizeof error);
    }
}

/* Ends the orders whose wait for the row is over, at least the one with the shortest wait. Moves the other orders without an
 * answer to the front, and returns their number. */
static size_t give_up_waiting(struct placing **orders, size_t count)
{
    int64_t now_us = monotonic_us(), first_us = INT64_MAX;
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        first_us = wait_end(orders[i]) < first_us ? wait_end(orders[i]) : first_us;
    for (size_t i = 0; i < count; i++) {
        if (!is_unanswered(orders[i]))
            continue;
        if (wait_end(orders[i]) <= now_us || wait_end(orders[i]) == first_us)
            orders[i]->result.outcome = ORDER_LOCK_TIMEOUT;
        else
            orders[left++] = orders[i];
    }
    return left;
}

void create_batch(struct placing *const *orders, size_t count)
{
    struct placing *left[ORDER_BATCH_MAX];
    memcpy(left, orders, count * sizeof left[0]);
    for (int tries = 1; count > 1; tries++) {
        enum outcome outcome = try_together(left, count, tries);
        if (outcome == ORDER_GO_ON)
            return;
        if (outcome == ORDER_BACKEND_UNAVAILABLE || outcome == ORDER_UNKNOWN) {
            lose_all(left, count, outcome);
            return;
        }
        if (outcome != ORDER_LOCK_TIMEOUT)
            break;
        count = give_up_waiting(left, count);
    }
    for (size_t i = 0; i < count; i++)
        create_order(left[i]); /* so that an error of one order does not fail the others */
}
