/* The calls between the orders of a fault run: the stock and the think time are set while nothing is broken. So a service that refuses such
 * a call has a mistake: that is a wrong answer, and not a fault of the environment. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/client/key_probe.h"

#include <stdio.h>

#define AGAIN_MS 5000 /* for a call that failed, so that the cycle can go on */
#define PAUSE_MS 100
#define KEY_PRODUCTS 500 /* between a product of a fault and the one that gets its key as well */

void fault_note_end(struct fault_run *run, int i, const char *when)
{
    char status[64], text[128];
    snprintf(text, sizeof text, "a service that %s: %s", when,
             child_status_text(&run->testbed->base.services[i], status));
    fault_history_oddity(run->history, text);
    for (size_t s = 0; s < run->count; s++)
        run->subjects[s].counts.wrong++;
}

bool fault_note_refusal(struct fault_run *run, int i, struct fault_subject *subject)
{
    if (interrupted())
        return false;
    fault_history_oddity(run->history, service_client_error(run->testbed->base.clients[i]));
    subject->counts.wrong++;
    if (!child_ended(&run->testbed->base.services[i]))
        return true;
    fault_note_end(run, i, "was not stopped");
    return fault_service_start(run->testbed, i);
}

static bool set_stock(struct fault_run *run, struct fault_subject *subject, int64_t stock)
{
    const char *kind = stock_kinds[subject->strategy->take_stock->kind].name;
    /* One such answer is enough for the verdict: later ones are not worth the time. */
    int64_t end_us = monotonic_us() + (subject->counts.wrong > 0 ? 0 : (int64_t)AGAIN_MS * 1000);
    for (bool noted = false;; noted = true) {
        if (service_client_reset(run->testbed->base.clients[0], subject->product, stock, kind))
            return true;
        if (!noted && !fault_note_refusal(run, 0, subject))
            return false;
        if (monotonic_us() > end_us)
            return true;
        if (!sleep_unless_interrupted(PAUSE_MS))
            return false;
    }
}

bool fault_set_stocks(struct fault_run *run, int64_t stock)
{
    for (size_t i = 0; i < run->count; i++)
        if (!set_stock(run, &run->subjects[i], stock))
            return false;
    return true;
}

bool fault_probe_keys(struct fault_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        struct fault_subject *subject = &run->subjects[i];
        char key[64], finding[KEY_FINDING];
        snprintf(key, sizeof key, "probe-%.32s-%zu", run->history->tag, i);
        const struct key_probe probe = {.strategy = subject->strategy->name,
                                        .kind = stock_kinds[subject->strategy->take_stock->kind].name,
                                        .product = subject->product,
                                        .other = subject->product + KEY_PRODUCTS,
                                        .key = key};
        if (!key_probe(run->testbed->base.clients[0], &probe, finding)) {
            if (!fault_note_refusal(run, 0, subject))
                return false;
        } else if (finding[0]) {
            fault_history_oddity(run->history, finding);
            subject->counts.wrong++;
        }
    }
    return true;
}

bool fault_set_think(struct fault_run *run, int i, int64_t think_ms)
{
    struct service_client *client = run->testbed->base.clients[i];
    /* The strategy is named because the call needs one; each order names its own. */
    if (service_client_switch(client, 0, "atomic-decrement", think_ms, SAME_LOCK_WAIT, SAME_IN_TURN))
        return true;
    for (size_t s = 0; s < run->count; s++)
        if (!fault_note_refusal(run, i, &run->subjects[s]))
            return false;
    return true;
}
