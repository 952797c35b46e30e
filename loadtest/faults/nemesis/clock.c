/* Faults of clocks: one Redis, a majority of Redlock's, or one of the services believes that an hour has passed. */
#include "loadtest/faults/fault.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/paths.h"
#include "loadtest/testbed/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REASON_SIZE 256
#define JUMP_S 3600 /* each jump goes so far beyond the one before */

static const char *const REDIS[] = {"redis", NULL};
static const char *const MAJORITY[] = {"redis-1", "redis-2", "redis-3", NULL};

/* A file is never truncated: a program that has mapped it would die. */
bool fault_clock_set(struct fault_testbed *testbed, const char *name, int64_t seconds)
{
    char path[PATH_MAX + 48];
    snprintf(path, sizeof path, "%s/clock-%s", testbed->base.dir, name);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    bool written = file >= 0 && pwrite(file, &seconds, sizeof seconds, 0) == sizeof seconds;
    if (!written)
        complain("cannot set the clock %s: %s", path, strerror(errno));
    if (file >= 0)
        close(file);
    return written;
}

bool clock_possible(struct fault_testbed *testbed, char *ret_reason, size_t size)
{
    char path[PATH_MAX];
    return preload_find(PATH_CLOCK, "clock", testbed->base.dir, path, ret_reason, size);
}

/* Each server with a clock of its own, or all with their own again. */
static bool restart_with_clocks(struct fault_run *run, const char *const *names, bool shifted)
{
    char shim[PATH_MAX], preload[PATH_MAX + 16], clock[PATH_MAX + 64], reason[REASON_SIZE];
    if (!preload_find(PATH_CLOCK, "clock", run->testbed->base.dir, shim, reason, sizeof reason)) {
        complain("%s", reason);
        return false;
    }
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", shim);
    for (size_t i = 0; names[i]; i++) {
        const char *const env[] = {preload, clock, NULL};
        snprintf(clock, sizeof clock, "OVERSELL_CLOCK=%s/clock-%s", run->testbed->base.dir, names[i]);
        if (!fault_clock_set(run->testbed, names[i], 0))
            return false;
        (void)fault_server_signal(run->testbed, names[i], SIGKILL);
        if (!fault_servers_up(run->testbed, (const char *[]){names[i], NULL}, shifted ? env : NULL))
            return false;
    }
    return true;
}

static bool jump(struct fault_run *run, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        if (!fault_clock_set(run->testbed, names[i], (run->cycle + 1) * JUMP_S))
            return false;
    return true;
}

bool enter_clock_redis(struct fault_run *run)
{
    return restart_with_clocks(run, REDIS, true);
}

bool nemesis_clock_redis(struct fault_run *run)
{
    return jump(run, REDIS);
}

bool leave_clock_redis(struct fault_run *run)
{
    return restart_with_clocks(run, REDIS, false);
}

bool enter_clock_redlock(struct fault_run *run)
{
    return restart_with_clocks(run, MAJORITY, true);
}

bool nemesis_clock_redlock(struct fault_run *run)
{
    return jump(run, MAJORITY);
}

bool leave_clock_redlock(struct fault_run *run)
{
    return restart_with_clocks(run, MAJORITY, false);
}

/* The second comer's clock is ahead of the holder's. */
bool nemesis_clock_service(struct fault_run *run)
{
    char name[24];
    snprintf(name, sizeof name, "service-%d", 2 - run->victim);
    return fault_clock_set(run->testbed, name, (run->cycle + 1) * JUMP_S);
}
