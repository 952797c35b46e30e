/* Faults of the network: in each cycle the proxies before one kind of server delay, stop or split what they forward, or reset
 * connections. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"

#define REPETITIONS_LEAST 12 /* in a cycle */
#define REPETITIONS_EACH 2   /* in a cycle, for each strategy: one repetition hits one connection */
#define REPETITIONS_MS 1500  /* for all of them */
#define CUT_BYTES 6000       /* one or two orders, of all orders that are placed at the same time */

static const struct proxy_rules NO_RULES;

/* Chooses one of the backends that have connections, another one in each cycle. As a bit. */
static unsigned next_backend(struct fault_run *run)
{
    unsigned left = fault_proxies_carrying(run->testbed);
    if (left == 0)
        left = 1u << SERVER_POSTGRES; /* its proxy cannot act, so the run fails */
    for (int64_t skip = run->cycle % __builtin_popcount(left); skip > 0; skip--)
        left &= left - 1; /* without its lowest bit */
    return left & -left;
}

/* Applies the fault's rules for a while. */
bool nemesis_network(struct fault_run *run)
{
    unsigned before = next_backend(run);
    run->targets |= before;
    fault_proxies_set(run->testbed, before, &run->fault->rules);
    bool ok = sleep_unless_interrupted(run->fault->lasts_ms);
    if (run->fault->rules.stall[TO_SERVER]) /* reset before the new rules let anything through */
        fault_proxies_cut(run->testbed, before);
    fault_proxies_set(run->testbed, before, &NO_RULES);
    run->ready_us = monotonic_us();
    return ok;
}

bool fault_set_rules_repeatedly(struct fault_run *run, unsigned before,
                                void (*set)(struct fault_run *run, struct proxy_rules *rules))
{
    int count = REPETITIONS_EACH * (int)run->count;
    if (count < REPETITIONS_LEAST)
        count = REPETITIONS_LEAST;
    int64_t pause_ms = REPETITIONS_MS / count;
    run->targets |= before;
    for (int i = 0; i < count; i++) {
        struct proxy_rules rules = run->fault->rules;
        set(run, &rules);
        fault_proxies_set(run->testbed, before, &rules);
        if (!sleep_unless_interrupted(random_between(&run->random, pause_ms / 2, pause_ms * 3 / 2)))
            return false;
    }
    fault_proxies_set(run->testbed, before, &NO_RULES);
    run->ready_us = monotonic_us();
    return true;
}

/* After a random number of bytes in one direction, so at any point of a message. */
static void cut_somewhere(struct fault_run *run, struct proxy_rules *rules)
{
    size_t direction = (size_t)random_up_to(&run->random, 1);
    rules->cut_after[direction] = random_between(&run->random, 1, CUT_BYTES);
}

bool nemesis_cut(struct fault_run *run)
{
    return fault_set_rules_repeatedly(run, next_backend(run), cut_somewhere);
}

/* The first service cannot reach its lock servers, so its session or lease is not renewed. */
bool nemesis_session(struct fault_run *run)
{
    fault_proxies_set(run->testbed, BEFORE_ALL, &run->fault->rules);
    return sleep_unless_interrupted(run->fault->ttl_ms + 1000);
}

bool after_session(struct fault_run *run)
{
    fault_proxies_cut(run->testbed, BEFORE_ALL);
    fault_proxies_set(run->testbed, BEFORE_ALL, &NO_RULES);
    return true;
}
