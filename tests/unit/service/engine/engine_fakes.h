/* A recording lock and a recording database in place of the real ones, for tests of the engine.
 *
 * It defines the functions of db/ that the engine calls, so one file of a program includes it. Calls are written in
 * lower case, steps that the engine reports in upper case: "ready acquire LOCK begin read READ … release UNLOCK".
 * A call that is to fail stands with its result: "commit=unknown settle=committed". Such a line is both what the
 * fakes answer and what is expected of the engine. Rules that hold for every order are checked at each call. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_ENGINE_ENGINE_FAKES_H
#define OVERSELL_TESTS_UNIT_SERVICE_ENGINE_ENGINE_FAKES_H

#include "tests/unit/service/engine/fake_db.h"
#include "tests/unit/service/engine/fake_lock.h"
#include "tests/unit/service/engine/fake_unsold.h"
#include "tests/unit/service/engine/shapes.h"

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
    order->placing.together = !observed;
    order->placing.on_done = NULL;
    order->placing.deadline_us = fake.now_us + 10 * 1000000;
    order->placing.lock_deadline_us = fake.now_us + 5 * 1000000;
    fake.placing = &order->placing;
}

static int fake_done;

static void fake_on_done(struct placing *placing)
{
    rule(placing->end == END_DONE && !fake.tx_open, "an order that is not done is said to be");
    fake_done++;
}

/* After fake_prepare: create_order does not wait for COMMIT. */
static inline void fake_end_later(struct fake_order *order)
{
    order->placing.on_done = fake_on_done;
    order->placing.together = true;
}

/* Places it, and looks whether anything was left behind. */
static void fake_place(struct fake_order *order)
{
    fake_done = 0;
    create_order(&order->placing);
    if (order->placing.end != END_DONE) {
        rule(fake.is_sent || order->placing.result.outcome == ORDER_BEHIND_FAILURE,
             "it waits for an end that was not sent");
        order_settle(&order->placing);
    }
    rule(fake_done <= 1, "an order is done twice");
    rule(!fake.is_sent, "an end is not awaited");
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
