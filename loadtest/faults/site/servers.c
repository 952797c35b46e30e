/* The servers of the private stack, one by one: ended, started again, sent signals. */
#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/faults/site/site.h"
#include "loadtest/testbed/paths.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define STACK_MS 120000
#define POLL_MS 5
#define TAIL_LINES 15
#define NAMES_MAX 12

/* The server's main process, as the stack's folder has it; 0: there is none. */
static int64_t pid_of(const struct site *site, const char *name)
{
    char path[PATH_MAX + 64];
    long long number = 0;
    snprintf(path, sizeof path, "%s/%s.pid", site->stack_dir, name);
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

static bool start_stack(struct site *site, const char *verb, const char *const *names, const char *const *env,
                        struct child *ret_child)
{
    char script[PATH_MAX], pid[24], log[PATH_MAX + 16];
    const char *argv[8 + NAMES_MAX] = {script, verb, "--dir", site->stack_dir};
    size_t count = 4;
    if (!path_of_stack(script))
        return false;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(log, sizeof log, "%s/stack.log", site->lab.dir);
    if (*verb == 'u') { /* the stack's watcher goes on watching us */
        argv[count++] = "--while";
        argv[count++] = pid;
        argv[count++] = "--purge";
    }
    for (size_t i = 0; names[i] && i < NAMES_MAX; i++)
        argv[count++] = names[i];
    struct child_plan plan = {.argv = argv, .env = env, .log = log, .death_signal = SIGTERM};
    if (child_start(&plan, ret_child))
        return true;
    complain("cannot start a process");
    return false;
}

static bool end_stack(struct site *site, const char *verb, const char *name, struct child *child)
{
    char status[64], log[PATH_MAX + 16];
    bool ended = child_wait(child, STACK_MS, false);
    child_stop(child, 5000);
    if (ended && child->status == 0)
        return true;
    snprintf(log, sizeof log, "%s/stack.log", site->lab.dir);
    complain("stack %s %s: %s", verb, name, ended ? child_status_text(child, status) : "not done in time");
    print_log_tail(log, TAIL_LINES);
    return false;
}

bool site_up(struct site *site, const char *const *names, const char *const *env)
{
    struct child child;
    return start_stack(site, "up", names, env, &child) && end_stack(site, "up", names[0], &child);
}

bool site_down(struct site *site, const char *const *names)
{
    struct child child;
    return start_stack(site, "down", names, NULL, &child) && end_stack(site, "down", names[0], &child);
}

/* A session is tried by a handle of its own, since one that has failed waits longer and longer. */
static bool takes_a_session(struct site *site)
{
    struct db *db = db_new(site->addresses.database_url, "oversell judge");
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
    if (!start_stack(site, "up", POSTGRES, env, &child))
        return false;
    int64_t ready_us = 0, end_us = monotonic_us() + (int64_t)STACK_MS * 1000;
    while (ready_us == 0 && !child_ended(&child) && monotonic_us() < end_us &&
           sleep_unless_interrupted(POLL_MS))
        if (takes_a_session(site))
            ready_us = monotonic_us();
    bool well = end_stack(site, "up", "postgres", &child);
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
