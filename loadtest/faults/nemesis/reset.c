/* The fault reset-beside: another process resets or replaces a product while orders of the product are in progress. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"

enum { FEW = 5, SOME = 40, MANY = 2000 };
enum { BEGINS_MS = 300, READS_MS = 15 };

/* Until the fault has met an order of the product: waits until one is in progress, and then until it has probably read. */
static bool await_reader(struct fault_run *run, size_t i)
{
    int64_t end_us = monotonic_us() + (int64_t)BEGINS_MS * 1000;
    if (!fault_awaits_meeting(&run->subjects[i]))
        return true;
    while (!fault_history_is_exposed(run->history, i, -1) && monotonic_us() < end_us)
        if (!sleep_unless_interrupted(1))
            return false;
    return sleep_unless_interrupted(READS_MS);
}

/* The second service makes the change. It does not know of the first one's orders, so these run concurrently with it. */
static bool change_stock(struct fault_run *run, size_t i, bool keeps_orders)
{
    struct service_client *client = run->testbed->base.clients[FAULT_INSTANCES - 1];
    struct fault_subject *subject = &run->subjects[i];
    struct sale_change *change = &run->history->changes[i];
    const char *kind = stock_kinds[subject->strategy->take_stock->kind].name;
    bool scarce = random_up_to(&run->random, 2) == 0;
    int64_t orders = scarce ? random_between(&run->random, FEW, SOME) : MANY;
    int64_t stock = run->history->quantity * orders + run->history->quantity - 1;
    change->keeps_orders = keeps_orders;
    change->began_us = monotonic_us();
    bool changed = keeps_orders ? service_client_replace(client, subject->product, stock, kind, "4.90")
                                : service_client_reset(client, subject->product, stock, kind);
    change->ended_us = monotonic_us();
    if (changed)
        return true;
    change->ended_us = 0; /* nothing is known of it */
    return fault_note_refusal(run, FAULT_INSTANCES - 1, subject);
}

/* Each product is changed once in a cycle: a second change would hide what the first one broke. */
bool nemesis_reset_beside(struct fault_run *run)
{
    bool keeps_orders = run->cycle / 2 % 4 ==
                        3; /* by pairs of cycles, because sales of one and two units alternate */
    run->history->strike.from_us =
        0; /* each product has a moment of its change, and the traces say which orders it met */
    for (size_t i = 0; i < run->count; i++)
        if (!await_reader(run, i) || !change_stock(run, i, keeps_orders))
            return false;
    run->ready_us = monotonic_us();
    return true;
}
