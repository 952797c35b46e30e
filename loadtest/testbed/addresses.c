/* Where the servers of the private stack are, and why those that are missing are. */
#include "loadtest/testbed/addresses.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/paths.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_ENV_MS 30000
#define TEXT_MAX 65536
#define LINE_SIZE 512

/* Where a server's address goes, by the lock server's name; and what the stack's complaints about it begin with. */
static const struct {
    const char *server;
    size_t offset;
    const char *complaint;
} SERVERS[] = {
    {"lock-database", offsetof(struct lock_config, database_url), "stack: postgres"},
    {"redis", offsetof(struct lock_config, redis_url), "stack: redis"},
    {"redlock", offsetof(struct lock_config, redlock_urls), "stack: redis"},
    {"zookeeper", offsetof(struct lock_config, zookeeper_connect), "stack: zookeeper"},
    {"etcd", offsetof(struct lock_config, etcd_endpoints), "stack: etcd"},
};

#define SERVER_COUNT (sizeof SERVERS / sizeof SERVERS[0])

/* A line for each of SERVERS, in that order; empty where nothing is up. Addresses in the user's environment are not meant. */
static const char SCRIPT[] =
    "unset DATABASE_URL REDIS_URL REDLOCK_URLS ZOOKEEPER_CONNECT ETCD_ENDPOINTS; "
    "addresses=$(\"$0\" env --dir \"$1\" 2>/dev/null) && eval \"$addresses\"; "
    "printf '%s\\n' \"$DATABASE_URL\" \"$REDIS_URL\" \"$REDLOCK_URLS\" \"$ZOOKEEPER_CONNECT\" \"$ETCD_ENDPOINTS\"";

static const char **address_of(struct lock_config *config, size_t i)
{
    return (const char **)(void *)((char *)config + SERVERS[i].offset);
}

bool addresses_read(const struct lab *lab, struct lock_config *ret_addresses)
{
    char script[PATH_MAX], dir[PATH_MAX];
    if (!path_of_stack(script) || !lab_stack_dir(lab, dir))
        return false;
    const struct child_plan plan = {
        .argv = (const char *[]){"sh", "-c", SCRIPT, script, dir, NULL},
        .death_signal = SIGTERM,
    };
    static char *text; /* so that what is never freed is no leak, whoever forgets the addresses */
    text = child_output(plan, STACK_ENV_MS, TEXT_MAX);
    char *rest = text;
    struct lock_config found = {.prefix = "oversell"};
    for (size_t i = 0; i < SERVER_COUNT; i++)
        *address_of(&found, i) = strsep(&rest, "\n");
    if (!rest) {
        if (!interrupted())
            complain("the private stack does not tell its addresses");
        free(text);
        return false;
    }
    *ret_addresses = found;
    return true;
}

/* The last complaint that begins so in the stack's log, without "stack: "; false if there is none. */
static bool find_complaint(const struct lab *lab, const char *beginning, char *ret_reason, size_t size)
{
    char path[PATH_MAX + 16], line[LINE_SIZE];
    bool found = false;
    snprintf(path, sizeof path, "%s/stack.log", lab->dir);
    FILE *log = fopen(path, "re");
    if (!log)
        return false;
    while (fgets(line, sizeof line, log)) {
        if (strncmp(line, beginning, strlen(beginning)) != 0)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(ret_reason, size, "%s", line + strlen("stack: "));
        found = true;
    }
    fclose(log);
    return found;
}

bool address_known(struct lock_config *addresses, const struct lab *lab, const struct lock_server *server,
                   char *ret_reason, size_t size)
{
    for (size_t i = 0; i < SERVER_COUNT; i++) {
        if (strcmp(SERVERS[i].server, server->name) != 0)
            continue;
        if (**address_of(addresses, i))
            return true;
        if (find_complaint(lab, SERVERS[i].complaint, ret_reason, size))
            return false;
    }
    snprintf(ret_reason, size, "%s is not up", server->name);
    return false;
}
