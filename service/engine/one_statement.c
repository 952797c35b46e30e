/* Places an order as one statement, so that the product's row is locked for one commit instead of several round trips. */
#include "service/engine/create_order.h"

#include "db/postgres/statements.h"

enum outcome place_in_one_statement(struct placing *p)
{
    struct order_origin origin = {p->strategy->name, p->instance};
    bool keyed = p->request->idempotency_key !=
                 NULL; /* then the key is claimed first, in one transaction with it */
    if (keyed) {
        db_begin(p->db, p->strategy->isolation);
        enum outcome claimed = claim_key(p);
        if (claimed != ORDER_GO_ON)
            return end_transaction(p, claimed, STEP_COMMIT, "");
    }
    if (!keyed && p->on_done) {
        const char *const values[] = PLACE_IN_ONE_VALUES(p->request, &origin);
        return end_later(p, &ST_PLACE_IN_ONE, values, "");
    }
    enum take_status status = orders_place_in_one(p->db, keyed, p->request, &origin, &p->taken,
                                                  &p->result.order);
    enum outcome outcome = outcome_of_take(p, status);
    if (keyed)
        return end_transaction(p, outcome, STEP_COMMIT, p->result.order.xid);
    if (outcome != ORDER_GO_ON)
        return outcome;
    report_step(p->observer, STEP_COMMIT, STEP_NO_VALUE);
    return ORDER_CREATED;
}
