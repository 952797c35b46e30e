/* The servers of the private stack, one by one: ended, started again, sent signals. */
#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/faults/site/site.h"
#include "loadtest/testbed/stack.h"

#include <signal.h>
#include <stdio.h>

#define STACK_MS 120000
#define POLL_MS 5

/* The server's main process, as the stack's folder has it; 0: there is none. */
static int64_t pid_of(const struct site *site, const char *name)
{
    char path[PATH_MAX + 64];
    long long number = 0;
    snprintf(path, sizeof path, "%s/%s.pid", site->base.stack_dir, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%lld", &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

bool site_signal(struct site *site, const char *name, int signal_number)
{
    int64_t pid = pid_of(site, name);
    return pid > 1 && kill((pid_t)pid, signal_number) == 0;
}

bool site_up(struct site *site, const char *const *names, const char *const *env)
{
    return stack_run(&site->base, "up", names, env, 0);
}

bool site_down(struct site *site, const char *const *names)
{
    return stack_run(&site->base, "down", names, NULL, 0);
}

/* A session is tried by a handle of its own, since one that has failed waits longer and longer. */
static bool takes_a_session(struct site *site)
{
    struct db *db = db_new(site->base.addresses.database_url, "oversell judge");
    if (!db)
        return false;
    int64_t end_us = monotonic_us() + 500000;
    db_set_deadline(db, end_us, end_us);
    bool ready = db_ready(db) == DB_OK && db_ping(db) == DB_OK;
    db_free(db);
    return ready;
}

bool site_up_postgres(struct site *site, const char *const *env, int64_t *ret_ready_us)
{
    static const char *const POSTGRES[] = {"postgres", NULL};
    struct child child;
    if (!stack_begin(&site->base, "up", POSTGRES, env, &child))
        return false;
    int64_t ready_us = 0, end_us = monotonic_us() + (int64_t)STACK_MS * 1000;
    while (ready_us == 0 && !child_ended(&child) && monotonic_us() < end_us &&
           sleep_unless_interrupted(POLL_MS))
        if (takes_a_session(site))
            ready_us = monotonic_us();
    bool well = stack_end(&site->base, "up", &child, 0);
    *ret_ready_us = ready_us ? ready_us : monotonic_us();
    return well;
}

int64_t site_await_postgres(struct site *site)
{
    int64_t end_us = monotonic_us() + (int64_t)STACK_MS * 1000;
    while (monotonic_us() < end_us && sleep_unless_interrupted(POLL_MS))
        if (takes_a_session(site))
            return monotonic_us();
    if (!interrupted())
        complain("PostgreSQL does not come back");
    return 0;
}
