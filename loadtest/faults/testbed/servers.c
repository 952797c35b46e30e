/* Starts, stops and signals single servers of the private stack. */
#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/faults/testbed/fault_testbed.h"
#include "loadtest/testbed/stack.h"

#include <signal.h>
#include <stdio.h>

#define STACK_MS 120000
#define POLL_MS 5

/* The process id of the server's main process, from its file in the stack's folder; 0: it does not run. */
static int64_t pid_of(const struct fault_testbed *testbed, const char *name)
{
    char path[PATH_MAX + 64];
    long long number = 0;
    snprintf(path, sizeof path, "%s/%s.pid", testbed->base.stack_dir, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%lld", &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

bool fault_server_signal(struct fault_testbed *testbed, const char *name, int signal_number)
{
    int64_t pid = pid_of(testbed, name);
    return pid > 1 && kill((pid_t)pid, signal_number) == 0;
}

bool fault_servers_up(struct fault_testbed *testbed, const char *const *names, const char *const *env)
{
    return stack_run(&testbed->base, "up", names, env, 0);
}

bool fault_servers_down(struct fault_testbed *testbed, const char *const *names)
{
    return stack_run(&testbed->base, "down", names, NULL, 0);
}

/* Each try of a session uses a new handle, since a handle that has failed waits longer and longer. */
static bool takes_a_session(struct fault_testbed *testbed)
{
    struct db *db = db_new(testbed->base.addresses.database_url, "oversell judge");
    if (!db)
        return false;
    int64_t end_us = monotonic_us() + 500000;
    db_set_deadline(db, end_us, end_us);
    bool ready = db_ready(db) == DB_OK && db_ping(db) == DB_OK;
    db_free(db);
    return ready;
}

bool fault_postgres_up(struct fault_testbed *testbed, const char *const *env, int64_t *ret_ready_us)
{
    static const char *const POSTGRES[] = {"postgres", NULL};
    struct child child;
    if (!stack_begin(&testbed->base, "up", POSTGRES, env, &child))
        return false;
    int64_t ready_us = 0, end_us = monotonic_us() + (int64_t)STACK_MS * 1000;
    while (ready_us == 0 && !child_ended(&child) && monotonic_us() < end_us &&
           sleep_unless_interrupted(POLL_MS))
        if (takes_a_session(testbed))
            ready_us = monotonic_us();
    bool ok = stack_end(&testbed->base, "up", &child, 0);
    *ret_ready_us = ready_us ? ready_us : monotonic_us();
    return ok;
}

int64_t fault_postgres_await(struct fault_testbed *testbed)
{
    int64_t end_us = monotonic_us() + (int64_t)STACK_MS * 1000;
    while (monotonic_us() < end_us && sleep_unless_interrupted(POLL_MS))
        if (takes_a_session(testbed))
            return monotonic_us();
    if (!interrupted())
        complain("PostgreSQL did not start again");
    return 0;
}
