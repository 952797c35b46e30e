/* There is one product and at most one lock, so the table of footprints is short: who writes the product's row, who looks at it, who uses the lock. */
#include "loadtest/explore/exec/order_footprints.h"

#include <string.h>

enum { PRODUCT = 1, PRODUCT_KEY, LOCK, BEGINNING };

/* Until its COMMIT the UPDATE of a policy locks the row in a way that lets others refer to it, as the INSERT of an order item does. */
static bool lets_others_insert(const struct strategy *strategy)
{
    return strategy->take_stock->locks_at == STEP_WRITE && !strategy->take_stock->locks_all &&
           strategy->take_stock->kind == STOCK_COUNTER && strategy->isolation == DB_READ_COMMITTED;
}

static void write_product(struct footprint *footprint)
{
    footprint_add(footprint, true, PRODUCT, ALL_ROWS);
    footprint_add(footprint, true, PRODUCT_KEY, ALL_ROWS);
}

/* WHAT has no part in the order's transaction. */
static bool uses_lock_alone(const struct strategy *strategy, unsigned what)
{
    switch (what) {
    case STEP_WAIT:
    case STEP_LOCK:
    case STEP_UNLOCK:
    case STEP_SETNX:
    case STEP_EXPIRE:
    case STEP_GET:
    case STEP_DEL:
    case STEP_CHECK: return strategy->take_stock->locks_at != STEP_LOCK;
    default: return what == EVENT_ENDED;
    }
}

static void add_step(const struct strategy *strategy, unsigned what, struct footprint *footprint)
{
    const bool waits_at_write = lets_others_insert(strategy);
    if (uses_lock_alone(strategy, what)) {
        if (strategy->lock) /* at the end of an order, one that waits for a lock may look again */
            footprint_add(footprint, true, LOCK, ALL_ROWS);
        return;
    }
    switch (what) {
    case STEP_READ: /* a plain SELECT, unless it takes the row's lock */
        if (waits_at_write)
            footprint_add(footprint, false, PRODUCT, ALL_ROWS);
        else
            write_product(footprint);
        return;
    case STEP_WRITE:
        if (waits_at_write)
            footprint_add(footprint, true, PRODUCT, ALL_ROWS);
        else
            write_product(footprint);
        return;
    case STEP_INSERT: /* the order's own rows, and a look whether there is the product */
        footprint_add(footprint, !waits_at_write, PRODUCT_KEY, ALL_ROWS);
        return;
    case STEP_COMMIT:
    case STEP_COMMIT_STOCK:
        footprint_add(footprint, true, PRODUCT, ALL_ROWS);
        if (!waits_at_write)
            write_product(footprint);
        return;
    case STEP_WAIT: /* these two for a lock of the transaction */
    case STEP_LOCK:
    case STEP_TAKE:
    case STEP_FENCE:
    case STEP_REFUSE:
    case STEP_COMMIT_ORDER: write_product(footprint); return;
    case EVENT_WAITS: return; /* at the step that is added as its next one */
    default: footprint_add_all(footprint); return;
    }
}

/* The order's transaction is open after WHAT, and so it has published and unlocked nothing. */
static bool leaves_open(unsigned what)
{
    return what == STEP_READ || what == STEP_WRITE || what == STEP_TAKE || what == STEP_INSERT ||
           what == STEP_WAIT || what == STEP_LOCK || what == STEP_CHECK || what == EVENT_WAITS;
}

static bool commits(unsigned what)
{
    return what == STEP_COMMIT || what == STEP_COMMIT_STOCK || what == STEP_COMMIT_ORDER;
}

void order_footprints_begin(struct execution *execution)
{
    memset(execution->touched, 0, sizeof execution->touched);
}

/* ACTOR has reported WHAT. */
static void add_event(struct execution *execution, unsigned actor, unsigned what)
{
    struct footprint step = {0};
    add_step(execution->settings.strategy, what, &step);
    footprint_join(&execution->footprint, &step);
    if (!uses_lock_alone(execution->settings.strategy, what))
        footprint_join(&execution->touched[actor], &step);
    if (!leaves_open(what))
        footprint_join(&execution->footprint, &execution->touched[actor]);
    if (commits(what))
        execution->touched[actor] = (struct footprint){0};
}

void order_footprints_note(struct execution *execution, struct transition transition, size_t since)
{
    const unsigned next = execution_next_step(execution, transition.actor, since);
    execution->footprint = (struct footprint){0};
    /* Of a deadlock the server may choose another victim each time. */
    if (transition.kind != TRANSITION_STEP || execution->deadlock) {
        footprint_add_all(&execution->footprint);
        return;
    }
    /* Orders that are alike begin one after the other. */
    bool begins = true;
    for (size_t i = 0; i < since; i++)
        begins &= execution->trace.events[i].actor != transition.actor;
    if (begins)
        footprint_add(&execution->footprint, true, BEGINNING, ALL_ROWS);
    /* One that waits has reported nothing of what it waits for. */
    if (next < STEP_COUNT)
        add_step(execution->settings.strategy, next, &execution->footprint);
    for (size_t i = since; i < execution->trace.event_count; i++)
        add_event(execution, execution->trace.events[i].actor, execution->trace.events[i].what);
}
