/* The invariants: what must hold after every transition (one holder of a lock, and the server knows of it; nobody loses a
 * lock to another's release; nobody is refused units that are there), and at the end of an execution (audit, outcomes). */
#include "loadtest/explore/exec/invariants.h"

#include "loadtest/explore/exec/lock_admin.h"

/* ---- after every transition ------------------------------------------------------------------------------------ */

static bool has_it(const struct actor *actor)
{
    return actor->hold.depth > 0 && !actor->hold.is_over && actor->state != ACTOR_CRASHED;
}

/* ACTOR has released something: was it the lock that another actor holds? */
static void find_stolen_locks(struct execution *execution, unsigned actor)
{
    for (size_t i = 0; i < execution->settings.actors; i++) {
        struct actor *other = &execution->actors[i];
        if (i == actor || !has_it(other) || lock_admin_is_held(execution->lock_admin, &other->hold))
            continue;
        other->hold.is_over = true;
        execution->ending.lock_stolen = true;
        trace_event(&execution->trace, other->index, EVENT_LOCK_STOLEN, actor);
    }
}

/* ACTOR was granted the lock: does the server know of it, and does nobody else hold it? */
static void check_holders(struct execution *execution, const struct actor *actor)
{
    size_t holders = 0;
    for (size_t i = 0; i < execution->settings.actors; i++)
        holders += has_it(&execution->actors[i]);
    execution->ending.two_holders |= holders > 1;
    execution->ending.unbacked_grant |= has_it(actor) &&
                                        !lock_admin_is_held(execution->lock_admin, &actor->hold);
}

static void check_lock(struct execution *execution, size_t since)
{
    size_t count = execution->trace.event_count; /* find_stolen_locks adds events */
    if (!execution->settings.strategy->lock)
        return;
    for (size_t i = since; i < count; i++) {
        const struct event *event = &execution->trace.events[i];
        if (event->what == STEP_DEL || event->what == STEP_UNLOCK)
            find_stolen_locks(execution, event->actor);
        else if (event->what == STEP_LOCK)
            check_holders(execution, &execution->actors[event->actor]);
    }
}

/* Was an order refused as sold out although enough is left? Stock only falls in a schedule, so what is committed now was there
 * when the order was refused. False: PostgreSQL does not answer. The mutex is held, except while it is asked. */
static bool check_refusals(struct execution *execution, size_t since)
{
    struct product_audit audit = {0};
    bool audited = false;
    size_t count = execution->trace.event_count;
    for (size_t i = since; i < count; i++) {
        const struct event *event = &execution->trace.events[i];
        if (event->what != EVENT_ENDED || event->value != ORDER_SOLD_OUT)
            continue;
        if (!audited) {
            pthread_mutex_unlock(&execution->trace.mutex);
            audited = product_schema_audit(execution->schema, &audit);
            pthread_mutex_lock(&execution->trace.mutex);
        }
        if (!audited)
            return execution_database_error(execution);
        execution->ending.false_refusal |= audit.left >= execution->settings.quantities[event->actor];
    }
    return true;
}

bool invariants_check(struct execution *execution, size_t since)
{
    check_lock(execution, since);
    return check_refusals(execution, since);
}

/* ---- at the end ------------------------------------------------------------------------------------------------ */

/* Can a correct order have this outcome in this schedule? */
static bool is_explained(const struct execution *execution, enum outcome outcome)
{
    const struct strategy *strategy = execution->settings.strategy;
    switch (outcome) {
    case ORDER_CREATED:
    case ORDER_SOLD_OUT:
        return true; /* check_refusals has checked it */
    /* A fault ended its wait, or nobody could end it; or, where orders do not wait, others hold the units. */
    case ORDER_LOCK_TIMEOUT:
        return execution->fault_made || execution->ending.stuck || strategy->take_stock->kind == STOCK_UNITS;
    /* Others were quicker. A strategy with many tries outlasts all the others. */
    case ORDER_CONFLICT: return strategy->max_tries <= 1;
    case ORDER_LOCK_LOST: return execution->fault_made;
    default: return false;
    }
}

void invariants_check_end(struct execution *execution)
{
    struct ending *ending = &execution->ending;
    int64_t stock = execution->settings.stock, acknowledged = 0;
    ending->drift = ending->audit.sold - (stock - ending->audit.left);
    ending->oversold = ending->audit.sold > stock ? ending->audit.sold - stock : 0;
    for (size_t i = 0; i < execution->settings.actors; i++) {
        enum outcome outcome = ending->outcomes[i];
        if (execution_has_reported(execution, i,
                                   EVENT_CRASHED)) { /* its client got no answer; what it committed stays */
            acknowledged += execution_has_reported(execution, i, STEP_COMMIT) ||
                            execution_has_reported(execution, i, STEP_COMMIT_ORDER);
            continue;
        }
        acknowledged += outcome == ORDER_CREATED;
        ending->undersold |= outcome != ORDER_CREATED &&
                             execution->settings.quantities[i] <= stock - ending->audit.sold;
        ending->failed |= !is_explained(execution, outcome);
        /* In no serial execution of the orders is it refused, even after all that were created. */
        ending->false_refusal |= outcome == ORDER_SOLD_OUT && !execution->fault_made &&
                                 execution->settings.quantities[i] <= stock - ending->audit.sold &&
                                 execution->settings.quantities[i] <= ending->audit.left;
    }
    ending->answers_wrong = acknowledged != ending->audit.orders;
    for (size_t i = 0; i < execution->trace.event_count; i++)
        ending->waited |= execution->trace.events[i].what == EVENT_WAITS ||
                          execution->trace.events[i].what == STEP_WAIT;
}

bool ending_is_bad(const struct ending *ending)
{
    return ending->oversold > 0 || ending->drift != 0 || ending->answers_wrong || ending->stuck ||
           ending->failed || ending->false_refusal || ending->leaked;
}

bool ending_breaks_lock(const struct ending *ending)
{
    return ending->lock_stolen || ending->two_holders || ending->unbacked_grant;
}
