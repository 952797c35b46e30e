/* Faults of the network, before one kind of server after the other: late, standing still, byte by byte, cut. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"

#define DELAY_MS 50
#define LASTS_MS 1500
#define STALL_MS 3000        /* longer than a lease */
#define REPETITIONS_LEAST 12 /* in a cycle */
#define REPETITIONS_EACH 2   /* in a cycle, for each strategy: one stroke finds one connection */
#define REPETITIONS_MS 1500  /* for all of them */
#define CUT_BYTES 6000       /* an order or two, of all that order at the same time */

/* Of the backends that something goes to, the one whose turn it is, as a bit. */
static unsigned turn(struct fault_run *run)
{
    unsigned left = fault_proxies_carrying(run->testbed);
    if (left == 0)
        left = 1u << SERVER_POSTGRES; /* which has shown nothing then */
    for (int64_t skip = run->cycle % __builtin_popcount(left); skip > 0; skip--)
        left &= left - 1; /* without its lowest bit */
    unsigned lowest = left & -left;
    run->targets |= lowest;
    return lowest;
}

int fault_repetitions(const struct fault_run *run)
{
    int each = REPETITIONS_EACH * (int)run->count;
    return each > REPETITIONS_LEAST ? each : REPETITIONS_LEAST;
}

bool fault_pause_between(struct fault_run *run)
{
    int64_t rest_ms = REPETITIONS_MS / fault_repetitions(run);
    return sleep_unless_interrupted(random_between(&run->random, rest_ms / 2, rest_ms * 3 / 2));
}

static bool for_a_while(struct fault_run *run, const struct proxy_rules *rules, int64_t ms)
{
    unsigned before = turn(run);
    fault_proxies_set(run->testbed, before, rules);
    bool well = sleep_unless_interrupted(ms);
    if (rules->stall[TO_SERVER]) /* before what has stood still could go on */
        fault_proxies_cut(run->testbed, before);
    fault_proxies_set(run->testbed, before, &(struct proxy_rules){0});
    run->ready_us = monotonic_us();
    return well;
}

bool nemesis_delay(struct fault_run *run)
{
    return for_a_while(run, &(struct proxy_rules){.delay_ms = DELAY_MS}, LASTS_MS);
}

bool nemesis_one_byte(struct fault_run *run)
{
    return for_a_while(run, &(struct proxy_rules){.piece = 1}, LASTS_MS);
}

/* Nobody is told anything, until the hosts beyond have forgotten the connections: then they are reset. */
bool nemesis_half_open(struct fault_run *run)
{
    return for_a_while(run, &(struct proxy_rules){.stall = {true, true}}, STALL_MS);
}

/* After the N-th byte, in either direction, N at random: in the middle of whatever it is. */
bool nemesis_cut(struct fault_run *run)
{
    unsigned before = turn(run);
    for (int i = 0; i < fault_repetitions(run); i++) {
        struct proxy_rules rules = {0};
        rules.cut_after[random_up_to(&run->random, 1)] = random_between(&run->random, 1, CUT_BYTES);
        fault_proxies_set(run->testbed, before, &rules);
        if (!fault_pause_between(run))
            return false;
    }
    fault_proxies_set(run->testbed, before, &(struct proxy_rules){0});
    run->ready_us = monotonic_us();
    return true;
}

/* The network between the first service and its lock servers stands still: its session, or its lease, is kept alive no
 * longer. */
bool nemesis_session(struct fault_run *run)
{
    fault_proxies_set(run->testbed, BEFORE_ALL, &(struct proxy_rules){.stall = {true, true}});
    return sleep_unless_interrupted(run->fault->ttl_ms + 1000);
}

bool after_session(struct fault_run *run)
{
    fault_proxies_cut(run->testbed, BEFORE_ALL);
    fault_proxies_set(run->testbed, BEFORE_ALL, &(struct proxy_rules){0});
    return true;
}
