/* Faults of clocks: the clock of a Redis, of most of Redlock's servers, or of one service jumps ahead. */
#include "loadtest/faults/fault.h"

#include "loadtest/cli/complain.h"

#include <signal.h>
#include <stdio.h>

#define JUMP_S 3600 /* each jump goes this much further than the one before */

/* Restarts each server of the fault with its own clock, or with the machine's. */
static bool restart_servers(struct fault_run *run, bool own_clocks)
{
    struct shim_environment clock;
    char file[40], reason[256];
    const char *name;
    for (const char *const *names = run->fault->servers; (name = *names); names++) {
        snprintf(file, sizeof file, "clock-%s", name);
        if (!shim_prepare(&run->testbed->base, &clock_shim, file, &clock, reason, sizeof reason)) {
            complain("%s", reason);
            return false;
        }
        if (!fault_clock_set(run->testbed, name, 0))
            return false;
        (void)fault_server_signal(run->testbed, name, SIGKILL);
        if (!fault_servers_up(run->testbed, (const char *[]){name, NULL},
                              own_clocks ? clock.variables : NULL))
            return false;
    }
    return true;
}

bool enter_clocks(struct fault_run *run)
{
    return restart_servers(run, true);
}

bool leave_clocks(struct fault_run *run)
{
    return restart_servers(run, false);
}

bool nemesis_clocks(struct fault_run *run)
{
    for (const char *const *names = run->fault->servers; *names; names++)
        if (!fault_clock_set(run->testbed, *names, (run->cycle + 1) * JUMP_S))
            return false;
    return true;
}

/* The clock of the service that takes the second order is ahead of the holder's. */
bool nemesis_clock_service(struct fault_run *run)
{
    char name[24];
    snprintf(name, sizeof name, "service-%d", 2 - run->victim);
    return fault_clock_set(run->testbed, name, (run->cycle + 1) * JUMP_S);
}
