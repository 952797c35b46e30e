/* The private stack: the script that starts and stops real servers of our own on loopback. */
#include "loadtest/testbed/stack.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/paths.h"
#include "loadtest/testbed/servers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STACK_MS 180000
#define TAIL_LINES 20
#define NAMES_MAX 12

static void log_of(const struct lab *lab, char *ret_path)
{
    snprintf(ret_path, PATH_MAX + 16, "%s/stack.log", lab->dir);
}

bool stack_begin(const struct lab *lab, const char *verb, const char *const *names, const char *const *env,
                 struct child *ret_child)
{
    char script[PATH_MAX], pid[24], log[PATH_MAX + 16];
    const char *argv[8 + NAMES_MAX] = {script, verb, "--dir", lab->stack_dir};
    size_t count = 4;
    if (!path_of_stack(script))
        return false;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    log_of(lab, log);
    if (strcmp(verb, "up") == 0) { /* the script's watcher takes the stack down if this process is killed */
        argv[count++] = "--while";
        argv[count++] = pid;
        argv[count++] = "--purge";
    }
    for (size_t i = 0; names[i] && i < NAMES_MAX; i++)
        argv[count++] = names[i];
    const struct child_plan plan = {.argv = argv, .env = env, .log = log, .death_signal = SIGTERM};
    if (child_start(&plan, ret_child))
        return true;
    complain("cannot start a process: %s", strerror(errno));
    return false;
}

bool stack_end(const struct lab *lab, const char *verb, struct child *child, unsigned flags)
{
    char status[64], script[PATH_MAX], log[PATH_MAX + 16];
    bool ended = child_wait(child, STACK_MS, flags & STACK_INTERRUPTIBLE);
    child_stop(child, 5000);
    if (ended && child->status == 0)
        return true;
    if ((flags & STACK_QUIET) || ((flags & STACK_INTERRUPTIBLE) && interrupted()) || !path_of_stack(script))
        return false;
    log_of(lab, log);
    complain("the private stack: %s %s: %s", script, verb,
             ended ? child_status_text(child, status) : "not done in time");
    print_log_tail(log, TAIL_LINES);
    return false;
}

bool stack_run(const struct lab *lab, const char *verb, const char *const *names, const char *const *env,
               unsigned flags)
{
    struct child child;
    return stack_begin(lab, verb, names, env, &child) && stack_end(lab, verb, &child, flags);
}

bool stack_open(struct lab *lab, const struct lab_settings *settings)
{
    if (snprintf(lab->stack_dir, sizeof lab->stack_dir, "%s/stack", lab->dir) >= (int)sizeof lab->stack_dir)
        return false;
    const char *names[STACK_SERVERS + 1];
    bool shop = settings->instances > 0 || settings->database;
    size_t needed = servers_needed(shop, settings->strategies, names);
    names[needed] = NULL;
    lab->stack_is_up = needed == 0 || stack_run(lab, "up", names, NULL, STACK_INTERRUPTIBLE);
    /* Only the shop cannot do without its server. */
    for (size_t i = 0; !lab->stack_is_up && i < needed && (needed > 1 || !shop) && !interrupted(); i++) {
        const char *one[] = {names[i], NULL};
        if (!stack_run(lab, "up", one, NULL, STACK_INTERRUPTIBLE | STACK_QUIET) && shop && i == 0)
            return false;
        lab->stack_is_up = i + 1 == needed;
    }
    return lab->stack_is_up && servers_read_addresses(lab, &lab->addresses);
}

void stack_close(struct lab *lab)
{
    if (lab->stack_dir[0])
        (void)stack_run(lab, "down", (const char *[]){"--purge", NULL}, NULL,
                        lab->stack_is_up ? 0 : STACK_QUIET);
    lab->stack_dir[0] = 0;
    lab->stack_is_up = false;
}
