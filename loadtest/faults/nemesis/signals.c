/* Faults by signals: a service that is killed at a random moment, and one that sleeps beyond its leases. */
#include "loadtest/faults/fault.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <signal.h>

#define ENDS_MS 60000

/* The other one must take over. */
bool nemesis_kill(struct fault_run *run)
{
    if (child_ended(&run->testbed->base.services[run->victim]))
        fault_note_end(run, run->victim, "nobody had ended");
    fault_service_kill(run->testbed, run->victim);
    return fault_service_start(run->testbed, run->victim);
}

/* It ends by itself, well, and soon after its orders' deadline at the latest. */
bool nemesis_terminate(struct fault_run *run)
{
    struct child *child = &run->testbed->base.services[run->victim];
    child_signal(&run->testbed->base.services[run->victim], SIGTERM);
    if (!child_wait(child, ENDS_MS, true)) {
        if (!interrupted())
            complain("service-%d does not end when it is told to", run->victim + 1);
        return false;
    }
    if (child->status != 0)
        fault_note_end(run, run->victim, "was told to end");
    return fault_service_start(run->testbed, run->victim);
}

/* Twice as long as its leases, from the moment in which it has read. */
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
