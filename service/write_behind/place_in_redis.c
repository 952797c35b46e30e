/* Places orders of a product whose stock lies in Redis: one round trip takes the stock and accepts the orders there. The writer
 * stores them in PostgreSQL afterwards. */
#include "service/write_behind/place_in_redis.h"

#include "service/write_behind/accepted_order.h"
#include "service/write_behind/order_ids.h"
#include "service/write_behind/reconcile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOWEST_NS = 50000000 }; /* a pause at the bound of the stream */
enum { TRIES = 4 };             /* Redis may lose its stock more than once, and a key's order may go */

/* Orders under way. An order that nothing has refused has the outcome ORDER_GO_ON. */
struct round {
    struct placing *lead;
    struct placing *orders[ORDER_BATCH_MAX]; /* those that go on */
    int64_t gone[ORDER_BATCH_MAX];           /* see struct stock_order */
    size_t count;
};

static void end_all(struct round *round, enum outcome outcome)
{
    const struct order_result *why = &round->lead->result;
    for (size_t i = 0; i < round->count; i++) {
        struct order_result *result = &round->orders[i]->result;
        result->outcome = outcome;
        result->backend = why->backend;
        if (result != why) {
            memcpy(result->error, why->error, sizeof result->error);
            memcpy(result->kind, why->kind, sizeof result->kind);
        }
    }
    round->count = 0;
}

static enum outcome outcome_of_redis(struct placing *p, enum lock_status status, bool sent)
{
    snprintf(p->result.error, sizeof p->result.error, "%s", redis_stock_error(p->redis));
    p->result.backend = "redis";
    if (status == LOCK_FAILED)
        return ORDER_FAILED;
    return status == LOCK_AWAY && sent ? ORDER_UNKNOWN : ORDER_BACKEND_UNAVAILABLE;
}

/* ---- what is known of an Idempotency-Key -------------------------------------------------------------------------- */

/* Asks PostgreSQL for the orders that have those keys; whose key is new goes on, and who has none in any case. */
static void look_up_keys(struct round *round)
{
    struct order_draft drafts[ORDER_BATCH_MAX];
    struct placing *keyed[ORDER_BATCH_MAX];
    size_t keys = 0, kept = 0;
    for (size_t i = 0; i < round->count; i++) {
        struct placing *p = round->orders[i];
        if (!p->request->idempotency_key)
            continue;
        keyed[keys] = p;
        drafts[keys++] = (struct order_draft){.request = p->request, .order = &p->result.order};
    }
    if (keys == 0)
        return;
    enum db_status status = db_ready(round->lead->db);
    if (status == DB_OK)
        status = orders_claim_keys(round->lead->db, drafts, keys);
    for (size_t i = 0; i < keys; i++)
        keyed[i]->result.outcome = status == DB_OK ? outcome_of_claim(drafts[i].claim)
                                                   : outcome_of_db(keyed[i], status);
    for (size_t i = 0; i < round->count; i++)
        if (round->orders[i]->result.outcome == ORDER_GO_ON) {
            round->gone[kept] = round->gone[i];
            round->orders[kept++] = round->orders[i];
        }
    round->count = kept;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool asks_for(const struct order_request *request, const struct accepted_order *order)
{
    return request->product_id == order->product_id && request->quantity == order->quantity &&
           same_text(request->receiver_name, order->receiver_name) &&
           same_text(request->receiver_mobile, order->receiver_mobile);
}

/* Redis says that ID has P's key. If it is not in the stream any more it has been written meanwhile; if it is in
 * PostgreSQL neither, as after a reset, it is *ret_gone. */
static enum outcome replay(struct placing *p, int64_t id, bool *ret_gone)
{
    struct stream_batch *found = calloc(1, sizeof *found);
    enum outcome outcome = ORDER_FAILED;
    *ret_gone = false;
    if (!found)
        return ORDER_FAILED;
    enum lock_status status = redis_stream_find(p->redis, p->deadline_us, id, found);
    if (status != LOCK_OK) {
        outcome = outcome_of_redis(p, status, false);
    } else if (found->count == 1 && order_is_outdated(p->db, &found->orders[0])) {
        *ret_gone = true;
        outcome = ORDER_GO_ON;
    } else if (found->count == 1) {
        outcome = asks_for(p->request, &found->orders[0]) ? ORDER_REPLAYED : ORDER_KEY_MISMATCH;
        order_of_accepted(&found->orders[0], &p->result.order);
    } else {
        struct order_draft draft = {.request = p->request, .order = &p->result.order};
        enum db_status db_status = db_ready(p->db);
        if (db_status == DB_OK)
            db_status = orders_claim_keys(p->db, &draft, 1);
        outcome = db_status == DB_OK ? outcome_of_claim(draft.claim) : outcome_of_db(p, db_status);
        *ret_gone = outcome == ORDER_GO_ON;
    }
    stream_release(found);
    free(found);
    return outcome;
}

/* ---- taking -------------------------------------------------------------------------------------------------------- */

static enum outcome outcome_of_reconciled(struct placing *p, enum reconciled reconciled,
                                          const struct reconciliation *r)
{
    switch (reconciled) {
    case RECONCILED: return ORDER_GO_ON;
    case RECONCILE_NO_PRODUCT: return ORDER_NO_SUCH_PRODUCT;
    case RECONCILE_OTHER_KIND:
        memcpy(p->result.kind, r->product.kind, sizeof p->result.kind);
        return ORDER_WRONG_STOCK_KIND;
    case RECONCILE_DATABASE: return outcome_of_db(p, r->db_status);
    case RECONCILE_REDIS: break;
    }
    return outcome_of_redis(p, r->lock_status, false);
}

static enum outcome load(struct placing *lead)
{
    struct reconciliation r;
    enum outcome outcome = outcome_of_db(lead, db_ready(lead->db));
    if (outcome != ORDER_GO_ON)
        return outcome;
    enum reconciled reconciled = reconcile(lead->db, lead->redis, lead->request->product_id,
                                           lead->deadline_us, &r);
    return outcome_of_reconciled(lead, reconciled, &r);
}

static enum outcome draw_ids(struct placing *lead, int64_t *ret_ids, size_t count,
                             char ret_shop[static SHOP_NAME_SIZE])
{
    while (!order_ids_take(lead->ids, ret_ids, count, ret_shop)) {
        enum db_status status = db_ready(lead->db);
        if (status == DB_OK)
            status = order_ids_draw(lead->ids, lead->db);
        if (status != DB_OK)
            return outcome_of_db(lead, status);
    }
    return ORDER_GO_ON;
}

static void accept(struct placing *p, const struct stock_order *taken, const char *price,
                   const char *accepted_at)
{
    const struct order_request *request = p->request;
    const struct accepted_order order = {.id = taken->id,
                                         .product_id = request->product_id,
                                         .quantity = request->quantity,
                                         .stock_seen = taken->value,
                                         .price = price,
                                         .accepted_at = accepted_at};
    order_of_accepted(&order, &p->result.order);
    p->result.outcome = ORDER_ACCEPTED;
    report_step(p->observer, STEP_TAKE, taken->value - request->quantity);
}

/* Gives each order what came of it; those that are to be tried once more stay in the round. */
static void hand_out(struct round *round, const struct stock_orders *asked)
{
    size_t kept = 0;
    for (size_t i = 0; i < round->count; i++) {
        struct placing *p = round->orders[i];
        const struct stock_order *order = &asked->orders[i];
        bool gone = false;
        if (order->taking == TAKEN) {
            accept(p, order, asked->price, asked->accepted_at);
            continue;
        }
        order_ids_return(p->ids, asked->shop, order->id);
        if (order->taking == TOO_FEW) {
            p->result.outcome = ORDER_SOLD_OUT;
            p->result.available = order->value;
            continue;
        }
        p->result.outcome = replay(p, order->value, &gone);
        if (gone) {
            round->gone[kept] = order->value;
            round->orders[kept++] = p;
        }
    }
    round->count = kept;
}

static void return_ids(struct placing *lead, const struct stock_orders *asked)
{
    for (size_t i = asked->count; i > 0; i--)
        order_ids_return(lead->ids, asked->shop, asked->orders[i - 1].id);
}

/* Where orders come faster than they are written, clients who wait for their answer before they order again are kept
 * waiting, the longer the nearer the stream is to its bound: they need not be turned away. */
static void slow_down(int64_t backlog)
{
    int64_t over = backlog - STOCK_BACKLOG_MAX / 2;
    if (over > 0)
        nanosleep(&(struct timespec){.tv_nsec = (int64_t)SLOWEST_NS * over / (STOCK_BACKLOG_MAX / 2)}, NULL);
}

/* One try; ORDER_GO_ON: who is still in the round is tried again. Else that is what has become of all who are. */
static enum outcome take(struct round *round)
{
    struct stock_order orders[ORDER_BATCH_MAX];
    int64_t ids[ORDER_BATCH_MAX];
    char accepted_at[40], shop[SHOP_NAME_SIZE];
    struct placing *lead = round->lead;
    enum outcome outcome = draw_ids(lead, ids, round->count, shop);
    if (outcome != ORDER_GO_ON)
        return outcome;
    for (size_t i = 0; i < round->count; i++) {
        const struct order_request *request = round->orders[i]->request;
        orders[i] = (struct stock_order){.id = ids[i],
                                         .quantity = request->quantity,
                                         .receiver_name = request->receiver_name,
                                         .receiver_mobile = request->receiver_mobile,
                                         .idempotency_key = request->idempotency_key,
                                         .gone = round->gone[i]};
    }
    accepted_now(accepted_at);
    struct stock_orders asked = {.shop = shop,
                                 .product_id = lead->request->product_id,
                                 .instance = lead->instance,
                                 .accepted_at = accepted_at,
                                 .orders = orders,
                                 .count = round->count};
    enum lock_status status = redis_stock_take(lead->redis, lead->deadline_us, &asked);
    if (status != LOCK_OK)
        return outcome_of_redis(lead, status,
                                asked.sent); /* an id that may have been used is nobody else's */
    if (asked.state == STOCK_TAKEN) {
        hand_out(round, &asked);
        slow_down(asked.backlog);
        return ORDER_GO_ON;
    }
    return_ids(lead, &asked);
    return asked.state == STOCK_CROWDED ? ORDER_OVERLOADED : load(lead);
}

void create_in_redis(struct placing *const *orders, size_t count)
{
    struct round round = {.lead = orders[0], .count = count};
    for (size_t i = 0; i < count; i++) {
        orders[i]->result = (struct order_result){
            .outcome = ORDER_GO_ON, .tries = 1, .available = STOCK_UNSEEN};
        round.orders[i] = orders[i];
    }
    db_set_deadline(round.lead->db, round.lead->deadline_us, round.lead->lock_deadline_us);
    enum outcome outcome = round.lead->redis ? ORDER_GO_ON : ORDER_FAILED;
    if (outcome == ORDER_GO_ON)
        look_up_keys(&round);
    for (int i = 0; i < TRIES && round.count > 0 && outcome == ORDER_GO_ON; i++)
        outcome = take(&round);
    if (round.count > 0)
        end_all(&round, outcome == ORDER_GO_ON ? ORDER_CONFLICT : outcome);
}
