/* Faults by signals: a service that is killed at a random moment, and one that sleeps beyond its leases. */
#include "loadtest/fault.h"

#include "loadtest/interrupt.h"

#include <signal.h>

/* The other one must take over; the dead one is started again only then, since it would take the lock as well. */
bool strike_kill(struct fault_run *run)
{
    site_kill_service(run->site, run->victim);
    return site_start_service(run->site, run->victim);
}

/* Twice as long as its leases, from the moment in which it has read. */
bool strike_pause(struct fault_run *run)
{
    site_signal_service(run->site, run->victim, SIGSTOP);
    return sleep_unless_interrupted(run->fault->ttl_ms +
                                    fault_random_up_to(&run->random, run->fault->ttl_ms));
}

bool after_pause(struct fault_run *run)
{
    site_signal_service(run->site, run->victim, SIGCONT);
    return true;
}
