/* The private stack: the script that starts and stops real servers of our own on loopback. */
#include "loadtest/testbed/stack.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/paths.h"
#include "loadtest/testbed/servers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK_MS 180000
#define TAIL_LINES 20
#define NAMES_MAX 12

static void log_of(const struct testbed *testbed, char *ret_path)
{
    snprintf(ret_path, PATH_MAX + 16, "%s/stack.log", testbed->dir);
}

bool stack_begin(const struct testbed *testbed, const char *verb, const char *const *names,
                 const char *const *env, struct child *ret_child)
{
    char script[PATH_MAX], pid[24], log[PATH_MAX + 16];
    const char *argv[8 + NAMES_MAX] = {script, verb, "--dir", testbed->stack_dir};
    size_t count = 4;
    if (!path_of(PATH_STACK, script))
        return false;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    log_of(testbed, log);
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

bool stack_end(const struct testbed *testbed, const char *verb, struct child *child, unsigned flags)
{
    char status[64], script[PATH_MAX], log[PATH_MAX + 16];
    bool ended = child_wait(child, STACK_MS, flags & STACK_INTERRUPTIBLE);
    child_stop(child, 5000);
    if (ended && child->status == 0)
        return true;
    if ((flags & STACK_QUIET) || ((flags & STACK_INTERRUPTIBLE) && interrupted()) ||
        !path_of(PATH_STACK, script))
        return false;
    log_of(testbed, log);
    complain("cannot run %s %s: %s", script, verb, ended ? child_status_text(child, status) : "timed out");
    print_log_tail(log, TAIL_LINES);
    return false;
}

bool stack_run(const struct testbed *testbed, const char *verb, const char *const *names,
               const char *const *env, unsigned flags)
{
    struct child child;
    return stack_begin(testbed, verb, names, env, &child) && stack_end(testbed, verb, &child, flags);
}

char *stack_address(const struct testbed *testbed, const char *variable)
{
    enum { ENV_MS = 30000, TEXT_MAX = 16384 };
    char script[PATH_MAX];
    if (!path_of(PATH_STACK, script))
        return NULL;
    const struct child_plan plan = {
        .argv = (const char *[]){script, "env", "--dir", testbed->stack_dir, NULL}, .death_signal = SIGTERM};
    char *text = child_output(plan, ENV_MS, TEXT_MAX), *found = NULL;
    for (char *rest = text, *line; !found && (line = strsep(&rest, "\n"));) {
        size_t length = strlen(variable);
        if (strncmp(line, "export ", 7) == 0 && strncmp(line + 7, variable, length) == 0 &&
            line[7 + length] == '=')
            found = strdup(line + 7 + length + 1);
    }
    if (!found && !interrupted())
        complain("stack/stack did not print %s", variable);
    free(text);
    return found;
}

bool stack_open(struct testbed *testbed, const struct testbed_settings *settings)
{
    if (snprintf(testbed->stack_dir, sizeof testbed->stack_dir, "%s/stack", testbed->dir) >=
        (int)sizeof testbed->stack_dir)
        return false;
    const char *names[STACK_SERVERS + 1];
    bool shop = settings->instances > 0 || settings->database;
    size_t needed = servers_needed(shop, settings->strategies, names);
    names[needed] = NULL;
    testbed->stack_is_up = needed == 0 || stack_run(testbed, "up", names, NULL, STACK_INTERRUPTIBLE);
    /* Only the shop cannot do without its server. */
    for (size_t i = 0; !testbed->stack_is_up && i < needed && (needed > 1 || !shop) && !interrupted(); i++) {
        const char *one[] = {names[i], NULL};
        if (!stack_run(testbed, "up", one, NULL, STACK_INTERRUPTIBLE | STACK_QUIET) && shop && i == 0)
            return false;
        testbed->stack_is_up = i + 1 == needed;
    }
    return testbed->stack_is_up && servers_read_addresses(testbed, &testbed->addresses);
}

void stack_close(struct testbed *testbed)
{
    if (testbed->stack_dir[0])
        (void)stack_run(testbed, "down", (const char *[]){"--purge", NULL}, NULL,
                        testbed->stack_is_up ? 0 : STACK_QUIET);
    testbed->stack_dir[0] = 0;
    testbed->stack_is_up = false;
}
