/* Exercise 2, solved: the mutex is released once, after the COMMIT or the rollback, on every path. */
#include "service/engine/create_order.h"

static void unlock(struct placing *p)
{
    (void)lock_release(p->lock, &p->grants[0]);
    p->held = 0;
    report_step(p->observer, STEP_UNLOCK, STEP_NO_VALUE);
}

static enum outcome take_and_insert(struct placing *p)
{
    struct stock_want want = {.product_id = p->request->product_id,
                              .quantity = p->request->quantity,
                              .updated_by = p->instance,
                              .observer = p->observer};
    struct order_origin origin = {p->strategy->name, p->instance};
    enum outcome outcome = claim_key(p); /* a repeated Idempotency-Key gets the first order */
    if (outcome == ORDER_GO_ON)
        outcome = outcome_of_take(p, take_read_write.take(p->db, &want, &p->taken));
    if (outcome != ORDER_GO_ON)
        return outcome;
    outcome = outcome_of_db(p, orders_insert(p->db, p->request, &origin, &p->taken, &p->result.order));
    report_step(p->observer, STEP_INSERT, STEP_NO_VALUE);
    return outcome;
}

static enum outcome place(struct placing *p)
{
    if (lock_acquire(p->lock, "shop", p->lock_deadline_us, &p->grants[0]) != LOCK_OK)
        return ORDER_LOCK_TIMEOUT;
    p->held = 1;
    report_step(p->observer, STEP_LOCK, STEP_NO_VALUE);

    db_begin(p->db, DB_READ_COMMITTED);
    enum outcome outcome = take_and_insert(p);
    outcome = end_transaction(p, outcome, STEP_COMMIT,
                              p->taken.xid); /* rolls back unless the outcome is ORDER_GO_ON */
    unlock(p);
    return outcome;
}

/* service/engine/strategy.h explains each cell. A cell that is left out is zero: the ordinary case. */
const struct strategy strategies[] = {
    {.name = "mine",
     .guarantee = GUARANTEE_ONE_PROCESS,
     .shown_by = SHOWN_BY_SECOND_PROCESS,
     .take_stock = &take_read_write,
     .lock = &process_mutex,
     .span = SPAN_AROUND_TX,
     .place = place,
     .title = "A mutex, taken and released by hand",
     .why = "The mutex is held until after the COMMIT, so each order reads what the last one committed."},
};

const size_t strategy_count = 1;
