/* The kinds of server that the private stack can start: which strategies need them, where they are, and why one is missing. */
#include "loadtest/testbed/servers.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/selection.h"
#include "loadtest/testbed/paths.h"
#include "service/engine/strategy.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_ENV_MS 30000
#define TEXT_MAX 65536
#define LINE_SIZE 512

/* Locks in PostgreSQL use the shop's server. */
static const struct {
    const char *lock_server; /* its name in lock/ */
    const char *stack;       /* the stack's name for it */
    const char *variable;
    size_t offset;
    const char *complaint; /* what the stack's complaints about it begin with */
} SERVERS[STACK_SERVERS] = {
    [SERVER_POSTGRES] = {"lock-database", "postgres", "DATABASE_URL",
                         offsetof(struct lock_config, database_url), "stack: postgres"},
    [SERVER_REDIS] = {"redis", "redis", "REDIS_URL", offsetof(struct lock_config, redis_url), "stack: redis"},
    [SERVER_REDLOCK] = {"redlock", "redlock", "REDLOCK_URLS", offsetof(struct lock_config, redlock_urls),
                        "stack: redis"},
    [SERVER_ZOOKEEPER] = {"zookeeper", "zookeeper", "ZOOKEEPER_CONNECT",
                          offsetof(struct lock_config, zookeeper_connect), "stack: zookeeper"},
    [SERVER_ETCD] = {"etcd", "etcd", "ETCD_ENDPOINTS", offsetof(struct lock_config, etcd_endpoints),
                     "stack: etcd"},
};

/* A line for each of SERVERS, in that order; empty where nothing is up. Addresses in the user's environment are not meant. */
static const char SCRIPT[] =
    "unset DATABASE_URL REDIS_URL REDLOCK_URLS ZOOKEEPER_CONNECT ETCD_ENDPOINTS; "
    "addresses=$(\"$0\" env --dir \"$1\" 2>/dev/null) && eval \"$addresses\"; "
    "printf '%s\\n' \"$DATABASE_URL\" \"$REDIS_URL\" \"$REDLOCK_URLS\" \"$ZOOKEEPER_CONNECT\" \"$ETCD_ENDPOINTS\"";

/* STACK_SERVERS: the stack has no such server. */
static enum stack_server stack_server_of(const struct lock_server *server)
{
    enum stack_server found = 0;
    while (found < STACK_SERVERS && (!server || strcmp(SERVERS[found].lock_server, server->name) != 0))
        found++;
    return found;
}

size_t servers_needed(bool shop, const char *list, const char *ret_names[STACK_SERVERS])
{
    bool needed[STACK_SERVERS] = {[SERVER_POSTGRES] = shop};
    size_t count = 0;
    for (size_t i = 0; list && i < strategy_count; i++) {
        enum stack_server server = stack_server_of(strategy_server(&strategies[i]));
        if (server < STACK_SERVERS &&
            selection_means(list, strategies[i].name, guarantee_name(strategies[i].guarantee)))
            needed[server] = true;
    }
    for (size_t i = 0; i < STACK_SERVERS; i++)
        if (needed[i])
            ret_names[count++] = SERVERS[i].stack;
    return count;
}

const char **server_address(struct lock_config *config, enum stack_server server)
{
    return (const char **)(void *)((char *)config + SERVERS[server].offset);
}

const char *server_variable(enum stack_server server)
{
    return SERVERS[server].variable;
}

bool servers_read_addresses(const struct testbed *testbed, struct lock_config *ret_addresses)
{
    char script[PATH_MAX];
    if (!path_of(PATH_STACK, script))
        return false;
    const struct child_plan plan = {
        .argv = (const char *[]){"sh", "-c", SCRIPT, script, testbed->stack_dir, NULL},
        .death_signal = SIGTERM,
    };
    static char *text; /* so that what is never freed is no leak, whoever forgets the addresses */
    text = child_output(plan, STACK_ENV_MS, TEXT_MAX);
    char *rest = text;
    struct lock_config found = {.prefix = "oversell"};
    for (size_t i = 0; i < STACK_SERVERS; i++)
        *server_address(&found, (enum stack_server)i) = strsep(&rest, "\n");
    if (!rest) {
        if (!interrupted())
            complain("stack/stack did not print the addresses of the private servers");
        free(text);
        return false;
    }
    *ret_addresses = found;
    return true;
}

/* The last line of the stack's log that starts with BEGINNING, without "stack: "; false if there is none. */
static bool find_complaint(const struct testbed *testbed, const char *beginning, char *ret_reason,
                           size_t size)
{
    char path[PATH_MAX + 16], line[LINE_SIZE];
    bool found = false;
    snprintf(path, sizeof path, "%s/stack.log", testbed->dir);
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

bool server_is_up(const struct testbed *testbed, const struct lock_server *server, char *ret_reason,
                  size_t size)
{
    enum stack_server found = stack_server_of(server);
    struct lock_config addresses = testbed->addresses;
    if (found < STACK_SERVERS && **server_address(&addresses, found))
        return true;
    if (found == STACK_SERVERS || !find_complaint(testbed, SERVERS[found].complaint, ret_reason, size))
        snprintf(ret_reason, size, "%s is not running", server->name);
    return false;
}
