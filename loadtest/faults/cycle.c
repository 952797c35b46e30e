/* One cycle of a fault: clients order while something breaks (CYCLE_LOAD), or a second order overtakes one that holds the lock
 * (CYCLE_OVERTAKE). */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/wait_note.h"
#include "loadtest/faults/checker/sections.h"
#include "loadtest/testbed/redis_cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS INT64_C(10)
#define WARM_MS 120000          /* until every strategy has served an order, before the fault */
#define STUCK_MS INT64_C(8000)  /* after this time a lock that is expected to be stuck counts as stuck */
#define REPLY_MS INT64_C(30000) /* I6: no answer takes longer */
#define PATIENCE_MS 15000
#define PAUSE_MS 200 /* of a client, at most */
#define AMPLE 2000
#define HOLDERS_THINK_MS 200
#define MET_THINK_MS 50   /* so that the fault meets an order of each strategy */
#define JOINING_CLIENTS 6 /* at each service, where a strategy combines orders that wait */
#define WARM_THINK_MS 50  /* so that orders overlap, and every worker is needed */
#define QUIET_MS INT64_C(1000)
#define OVERTAKEN_WAIT_MS 60000 /* until the second orders have read */

/* ---- for both kinds of cycle ---------------------------------------------------------------------------------------------- */

/* Starts services that have ended. A nemesis restarts what it kills, so these have ended unexpectedly. */
static bool restart_services(struct fault_run *run)
{
    for (int i = 0; i < FAULT_INSTANCES; i++)
        if (child_ended(&run->testbed->base.services[i])) {
            fault_note_end(run, i, "was not stopped");
            if (!fault_service_start(run->testbed, i))
                return false;
        }
    return true;
}

void fault_free_locks(struct fault_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (fault_lock_on(run->subjects[i].strategy, "redis"))
            (void)redis_tell(run->testbed->base.addresses.redis_url, 0, "DEL oversell:lock:product:%" PRId64,
                             run->subjects[i].product);
}

static struct fault_workload workload_of(struct fault_run *run, const struct fault_client *clients,
                                         size_t count)
{
    return (struct fault_workload){.history = run->history,
                                   .urls = {run->testbed->urls[0], run->testbed->urls[1]},
                                   .clients = clients,
                                   .count = count,
                                   .pause_ms = PAUSE_MS,
                                   .patience_ms = PATIENCE_MS,
                                   .reply_ms = REPLY_MS,
                                   .seed = run->seed};
}

static struct fault_client client_of(const struct fault_run *run, size_t i, int instance)
{
    const struct fault_subject *subject = &run->subjects[i];
    bool fixed = subject->strategy->guarantee == GUARANTEE_ONE_PROCESS;
    return (struct fault_client){.strategy = i,
                                 .name = subject->strategy->name,
                                 .product = subject->product,
                                 .instance = fixed ? 0 : instance,
                                 .fixed = fixed};
}

static bool judge(struct fault_run *run)
{
    struct fault_counts all_counts[FAULT_STRATEGIES_MAX] = {0};
    if (!fault_check(run->testbed, run->history, run->subjects[0].product, run->count, all_counts))
        return false;
    for (size_t i = 0; i < run->count; i++) {
        struct fault_subject *subject = &run->subjects[i];
        bool changed = run->history->changes[i].ended_us > 0;
        if (subject->strategy->lock && !fault_sections_check(run->testbed, subject->product,
                                                             run->history->cycle_began_us, &all_counts[i]))
            return false;
        if (changed && !fault_moments_check(run->testbed, subject->product, run->history->changes[i].began_us,
                                            &all_counts[i]))
            return false;
        if (subject->cycles < FAULT_CYCLES_KEPT) {
            struct fault_cycle *kept = &subject->kept[subject->cycles];
            kept->acknowledged = all_counts[i].acknowledged;
            kept->refused = all_counts[i].refused;
            kept->lost = all_counts[i].lost;
            kept->oversold = all_counts[i].oversold;
        }
        subject->cycles++;
        subject->empty += all_counts[i].acknowledged == 0;
        subject->seen_in += all_counts[i].oversold > 0 || all_counts[i].drift != 0 || all_counts[i].lost > 0;
        fault_counts_add(&subject->counts, &all_counts[i]);
    }
    return true;
}

/* ---- clients order while things break ------------------------------------------------------------------------ */

/* Waits until every strategy has served an order since SINCE_US (*RET_ALL), or for WAIT_MS; for strategies that are expected to be
 * stuck only STUCK_MS. False: interrupted. */
static bool await_service(struct fault_run *run, int64_t since_us, int64_t wait_ms, bool *ret_all)
{
    int64_t now_us = monotonic_us(), end_us = now_us + wait_ms * 1000, stuck_us = now_us + STUCK_MS * 1000;
    struct wait_note note = {0};
    const char *last = "";
    for (*ret_all = false; !*ret_all && (now_us = monotonic_us()) < end_us;) {
        fault_show_progress(run);
        *ret_all = true;
        for (size_t i = 0; i < run->count; i++) {
            /* The flaw need not show twice. */
            bool given_up = (run->subjects[i].expected & SEEN_STUCK) &&
                            (run->subjects[i].stuck || now_us > stuck_us);
            bool served = given_up || fault_history_served(run->history, i) > since_us;
            *ret_all &= served;
            last = served ? last : run->subjects[i].strategy->name;
        }
        if (!*ret_all)
            wait_note(&note, "an order of %s to be served, under the fault %s, at most %" PRId64 " s", last,
                      run->fault->name, wait_ms / 1000);
        if (!*ret_all && !sleep_unless_interrupted(POLL_MS))
            return false;
    }
    return true;
}

static int by_end(const void *a, const void *b)
{
    int64_t left = ((const struct intent *)a)->ended_us, right = ((const struct intent *)b)->ended_us;
    return (left > right) - (left < right);
}

/* The intents that were served since the fault, sorted by their ends, malloc'ed; NULL: out of memory. */
static struct intent *served_since(const struct fault_history *history, int64_t fault_us, size_t *ret_count)
{
    struct intent *served = malloc((history->count - history->from + 1) * sizeof *served);
    *ret_count = 0;
    for (size_t n = history->from; served && n < history->count; n++) {
        const struct intent *intent = &history->intents[n];
        if ((intent->told == TOLD_CREATED || intent->told == TOLD_SOLD_OUT) && intent->ended_us >= fault_us)
            served[(*ret_count)++] = *intent;
    }
    if (served)
        qsort(served, *ret_count, sizeof *served, by_end);
    return served;
}

/* Measures for each strategy the longest time after the fault without a served order, and the time from the repair to the first
 * one. */
static bool measure_outages(struct fault_run *run)
{
    int64_t last_us[FAULT_STRATEGIES_MAX], first_us[FAULT_STRATEGIES_MAX] = {0},
                                           from_us[FAULT_STRATEGIES_MAX], gap_us[FAULT_STRATEGIES_MAX] = {0};
    size_t count;
    struct intent *served = served_since(run->history, run->fault_us, &count);
    int64_t until_us = monotonic_us();
    if (!served) {
        complain("out of memory");
        return false;
    }
    for (size_t i = 0; i < run->count; i++)
        last_us[i] = from_us[i] = run->fault_us;
    for (const struct intent *intent = served; intent < served + count; intent++) {
        size_t i = intent->strategy;
        if (intent->ended_us - last_us[i] > gap_us[i]) {
            gap_us[i] = intent->ended_us - last_us[i];
            from_us[i] = last_us[i];
        }
        last_us[i] = intent->ended_us;
        if (intent->ended_us >= run->ready_us && first_us[i] == 0)
            first_us[i] = intent->ended_us;
    }
    free(served);
    for (size_t i = 0; i < run->count; i++) {
        struct fault_subject *subject = &run->subjects[i];
        bool stuck = first_us[i] == 0;
        if (stuck) {
            from_us[i] = last_us[i];
            gap_us[i] = until_us - last_us[i];
        }
        int64_t recovery_ms = ((stuck ? until_us : first_us[i]) - run->ready_us) / 1000;
        int64_t outage_ms = gap_us[i] / 1000;
        if (subject->cycles < FAULT_CYCLES_KEPT)
            subject->kept[subject->cycles] = (struct fault_cycle){
                .outage_ms = outage_ms,
                .recovery_ms = recovery_ms,
                .outage_from_ms = (from_us[i] - run->fault_us) / 1000,
                .repaired_ms = (run->ready_us - run->fault_us) / 1000,
                .stuck = stuck};
        subject->stuck |= stuck;
        subject->outages += recovery_ms > run->fault->ttl_ms / 2;
        if (outage_ms > subject->longest_outage_ms)
            subject->longest_outage_ms = outage_ms;
        if (recovery_ms > subject->longest_recovery_ms)
            subject->longest_recovery_ms = recovery_ms;
    }
    return true;
}

/* Starts clients for every strategy, as many at each service. All order at the first service if the strategy needs one process,
 * and at the victim if a holder must still die there. */
static struct fault_clients *start_clients(struct fault_run *run, struct fault_client *clients)
{
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++) {
        const struct fault_subject *subject = &run->subjects[i];
        bool at_victim = fault_awaits_outage(subject);
        bool joins = subject->strategy->combining != COMBINE_NONE;
        for (int n = 0; n < (joins ? JOINING_CLIENTS : 1) * FAULT_INSTANCES; n++) {
            clients[count] = client_of(run, i, at_victim ? run->victim : n % FAULT_INSTANCES);
            clients[count++].joins = joins;
        }
    }
    struct fault_workload workload = workload_of(run, clients, count);
    return fault_clients_start(&workload);
}

bool fault_await_service(struct fault_run *run)
{
    bool all;
    return await_service(run, run->ready_us, FAULT_LATE * run->fault->bound_ms, &all);
}

static bool break_things(struct fault_run *run)
{
    bool all;
    if (!await_service(run, 0, WARM_MS, &all))
        return false;
    if (!sleep_unless_interrupted(random_between(&run->random, 20, 400)))
        return false;
    if (!fault_aim(run))
        return false;
    fault_strike(run);
    run->ready_us = 0;
    if (!run->fault->nemesis(run))
        return false;
    if (run->ready_us == 0)
        run->ready_us = run->fault_us;
    if (run->fault->proxied) /* it meets orders until it is repaired */
        run->history->strike.until_us = run->ready_us;
    return fault_await_service(run);
}

bool fault_load(struct fault_run *run)
{
    static const int64_t THINK_MS[] = {0, 0, 5, 20};
    int64_t think_ms = run->fault->think_ms > 0 ? run->fault->think_ms
                                                : THINK_MS[random_up_to(&run->random, 3)];
    /* Every third stock sells out during the cycle. */
    bool scarce = random_up_to(&run->random, 2) == 0 && !run->fault->ample;
    bool dies = false, holds = false, accepts = false;
    for (size_t i = 0; i < run->count; i++) {
        bool awaits = fault_awaits_meeting(&run->subjects[i]), later = fault_writes_later(&run->subjects[i]);
        dies |= fault_awaits_outage(&run->subjects[i]);
        holds |= awaits && !later;
        accepts |= awaits && later;
    }
    if (dies || holds ||
        accepts) { /* the victim shall hold locks most of the time, or orders shall be in progress */
        int64_t longer_ms = dies ? HOLDERS_THINK_MS : holds ? MET_THINK_MS : 0;
        think_ms = run->fault->think_ms > 0 ? run->fault->think_ms : longer_ms;
        scarce = false;
    }
    /* In every second cycle each order takes two units, and one unit is left over. */
    int64_t quantity = run->cycle % 2 == 0 ? 2 : 1;
    int64_t stock = quantity * (scarce ? random_between(&run->random, 5, 40) : AMPLE) + quantity - 1;
    struct fault_client clients[FAULT_STRATEGIES_MAX * FAULT_INSTANCES * JOINING_CLIENTS];
    run->victim = (int)random_up_to(&run->random, FAULT_INSTANCES - 1);
    if (!restart_services(run) || !fault_set_think(run, 0, think_ms) || !fault_set_think(run, 1, think_ms) ||
        !fault_set_stocks(run, stock))
        return false;
    fault_free_locks(run);
    fault_begin_cycle(run);
    run->history->quantity = quantity;
    struct fault_clients *running = start_clients(run, clients);
    bool ok = running && break_things(run);
    fault_clients_end(running);
    if (!ok || interrupted())
        return false;
    return measure_outages(run) && restart_services(run) && judge(run);
}

/* ---- an order overtakes the holder ------------------------------------------------------------------------- */

/* Waits until all orders have read or ended, or WANTED of them have and no more did for QUIET_MS. BEFORE: orders that had read
 * earlier. */
static bool await_readers(struct fault_run *run, const struct fault_clients *clients, int64_t before,
                          size_t wanted, int64_t wait_ms)
{
    int64_t end_us = monotonic_us() + wait_ms * 1000, changed_us = 0, last = -1;
    while (monotonic_us() < end_us) {
        int64_t readers = fault_readers(run->testbed);
        fault_show_progress(run);
        if (readers < 0)
            return false;
        int64_t now = readers - before + (int64_t)(run->count - fault_clients_running(clients));
        if (now != last)
            changed_us = monotonic_us();
        last = now;
        bool all = now >= (int64_t)run->count;
        if (all || (now >= (int64_t)wanted && monotonic_us() - changed_us > QUIET_MS * 1000))
            return true;
        if (!sleep_unless_interrupted(POLL_MS * 2))
            return false;
    }
    return true; /* late orders are judged all the same */
}

/* How many strategies let a second order in because the first one's lock ends. */
static size_t expected_to_overtake(const struct fault_run *run)
{
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++)
        count += (run->subjects[i].expected & SEEN_OVERSOLD) != 0;
    return count;
}

static struct fault_clients *order_at(struct fault_run *run, int instance, struct fault_client *clients)
{
    for (size_t i = 0; i < run->count; i++) {
        clients[i] = client_of(run, i, instance);
        clients[i].fixed = true; /* a retry at the other service would be another holder */
    }
    struct fault_workload workload = workload_of(run, clients, run->count);
    workload.once = true;
    workload.reply_ms = 3 * REPLY_MS;
    workload.seed += (uint64_t)instance + 1;
    return fault_clients_start(&workload);
}

static bool await_end(const struct fault_run *run, const struct fault_clients *clients)
{
    while (fault_clients_running(clients) > 0) {
        fault_show_progress(run);
        if (!sleep_unless_interrupted(POLL_MS))
            return false;
    }
    return true;
}

/* The first order holds the lock and has read one unit; the fault; the second order starts; both continue. */
bool fault_overtake(struct fault_run *run)
{
    struct fault_client first[FAULT_STRATEGIES_MAX], second[FAULT_STRATEGIES_MAX];
    struct fault_clients *before = NULL, *after = NULL;
    int64_t by_lease_ms = run->fault->ttl_ms >= 10000 ? 10000 : 4000; /* the maximum, for slow machines */
    int64_t first_think_ms = run->fault->think_ms > 0 ? run->fault->think_ms : by_lease_ms;
    int64_t second_think_ms = 10000; /* the maximum that the service accepts */
    run->victim = (int)random_up_to(&run->random, FAULT_INSTANCES - 1);
    if (run->fault->proxied_one)
        run->victim = 0;
    int other = 1 - run->victim;
    if (!restart_services(run) || (run->fault->before && !run->fault->before(run)) ||
        !fault_set_think(run, run->victim, first_think_ms) || !fault_set_think(run, other, second_think_ms) ||
        !fault_set_stocks(run, 1))
        return false;
    fault_begin_cycle(run);
    bool ok = (before = order_at(run, run->victim, first)) != NULL &&
              await_readers(run, before, 0, run->count, first_think_ms / 2);
    fault_strike(run);
    run->ready_us = run->fault_us;
    ok = ok && run->fault->nemesis(run);
    int64_t readers = ok ? fault_readers(run->testbed) : 0;
    ok = ok && readers >= 0 && (after = order_at(run, other, second)) != NULL &&
         await_readers(run, after, readers, expected_to_overtake(run), OVERTAKEN_WAIT_MS);
    if (run->fault->after && !run->fault->after(run))
        ok = false;
    ok = ok && await_end(run, before) && await_end(run, after);
    fault_clients_end(before);
    fault_clients_end(after);
    return ok && restart_services(run) && judge(run);
}

bool fault_warm_up(struct fault_run *run)
{
    struct fault_client clients[FAULT_STRATEGIES_MAX];
    run->random = random_from(run->seed);
    for (int i = 0; i < 2 * FAULT_INSTANCES; i++) {
        if (!fault_set_think(run, i % FAULT_INSTANCES, WARM_THINK_MS) || !fault_set_stocks(run, AMPLE))
            return false;
        fault_history_begin_cycle(run->history);
        struct fault_clients *running = order_at(run, i % FAULT_INSTANCES, clients);
        bool ok = running && await_end(run, running);
        fault_clients_end(running);
        if (!ok)
            return false;
    }
    return fault_set_think(run, 0, 0) && fault_probe_keys(run);
}
