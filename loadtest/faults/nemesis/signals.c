/* Faults by signals: a service is killed, terminated, or paused for longer than its leases last. */
#include "loadtest/faults/fault.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <signal.h>

#define ENDS_MS 60000

/* The other service must continue alone. */
bool nemesis_kill(struct fault_run *run)
{
    if (child_ended(&run->testbed->base.services[run->victim]))
        fault_note_end(run, run->victim, "was not stopped");
    fault_service_kill(run->testbed, run->victim);
    return fault_service_start(run->testbed, run->victim);
}

/* The service must exit with status 0, soon after the deadline of its orders. */
bool nemesis_terminate(struct fault_run *run)
{
    struct child *child = &run->testbed->base.services[run->victim];
    child_signal(child, SIGTERM);
    if (!child_wait(child, ENDS_MS, true)) {
        if (!interrupted())
            complain("service-%d does not exit after SIGTERM", run->victim + 1);
        return false;
    }
    if (child->status != 0)
        fault_note_end(run, run->victim, "got SIGTERM");
    return fault_service_start(run->testbed, run->victim);
}

/* For one to two leases, after its order has read the stock. */
bool nemesis_pause(struct fault_run *run)
{
    child_signal(&run->testbed->base.services[run->victim], SIGSTOP);
    return sleep_unless_interrupted(run->fault->ttl_ms + random_up_to(&run->random, run->fault->ttl_ms));
}

bool after_pause(struct fault_run *run)
{
    child_signal(&run->testbed->base.services[run->victim], SIGCONT);
    return true;
}
