/* When a fault strikes: at a moment at which it meets orders that it can harm. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"

#include <time.h>

#define AIM_MS                                                                                               \
    500 /* the fault waits for so long until it can meet an order of each strategy that it has not met yet */

bool fault_awaits_meeting(const struct fault_subject *subject)
{
    return subject->counts.critical == 0;
}

bool fault_writes_later(const struct fault_subject *subject)
{
    return subject->strategy->take_stock->kind == STOCK_REDIS;
}

static int struck_instance(const struct fault_run *run)
{
    return run->fault->at_victim ? run->victim : -1;
}

bool fault_aim(struct fault_run *run)
{
    int64_t end_us = monotonic_us() + (int64_t)AIM_MS * 1000;
    for (bool all = false; !all && monotonic_us() < end_us;) {
        all = true;
        for (size_t i = 0; i < run->count; i++)
            all &= !fault_awaits_meeting(&run->subjects[i]) ||
                   fault_history_is_exposed(run->history, i, struck_instance(run));
        if (!all && !sleep_unless_interrupted(1))
            return false;
    }
    return true;
}

void fault_strike(struct fault_run *run)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    run->fault_us = monotonic_us();
    run->history->strike = (struct fault_strike){
        .from_us = run->fault_us,
        .until_us = run->fault_us,
        .from_wall_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000,
        .instance = struck_instance(run),
    };
}

void fault_begin_cycle(struct fault_run *run)
{
    fault_history_begin_cycle(run->history);
    /* In the other kinds of cycle one order is in progress for seconds, also if it is written later. */
    for (size_t i = 0; i < run->count; i++)
        run->history->writes_later[i] = run->fault->cycle == CYCLE_LOAD &&
                                        fault_writes_later(&run->subjects[i]);
}
