/* From strategies to the servers that they need: read off the strategy table. */
#include "loadtest/testbed/servers.h"

#include "loadtest/cli/selection.h"
#include "service/engine/strategy.h"

#include <string.h>

/* A lock server and what the stack calls it; locks in PostgreSQL need no server more than the shop. */
static const struct {
    const char *server, *stack;
} NAMES[] = {{"lock-database", "postgres"},
             {"redis", "redis"},
             {"redlock", "redlock"},
             {"zookeeper", "zookeeper"},
             {"etcd", "etcd"}};

static const char *stack_name(const struct strategy *strategy)
{
    const struct lock_server *server = strategy_server(strategy);
    for (size_t i = 0; server && i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strcmp(server->name, NAMES[i].server) == 0)
            return NAMES[i].stack;
    return NULL;
}

size_t servers_needed(bool shop, const char *list, const char *ret_names[SERVERS_MAX])
{
    size_t count = 0;
    if (shop)
        ret_names[count++] = NAMES[0].stack;
    for (size_t i = 0; list && i < strategy_count; i++) {
        const char *name = stack_name(&strategies[i]);
        if (!name || !selection_means(list, strategies[i].name, guarantee_name(strategies[i].guarantee)))
            continue;
        size_t j = 0;
        while (j < count && ret_names[j] != name)
            j++;
        if (j == count && count < SERVERS_MAX)
            ret_names[count++] = name;
    }
    return count;
}
