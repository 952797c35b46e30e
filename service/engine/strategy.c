/* Finding a strategy in the table, and what follows from its row. */
#include "service/engine/strategy.h"

#include <stdio.h>
#include <string.h>

const struct strategy *strategy_find(const char *name)
{
    for (size_t i = 0; i < strategy_count; i++)
        if (strcmp(strategies[i].name, name) == 0)
            return &strategies[i];
    return NULL;
}

const char *strategy_use_for(const struct strategy *strategy, char ret_use[USE_MAX])
{
    const char *use = guarantee_use(strategy->guarantee), *fits = strategy->fits;
    if (strategy->instead)
        snprintf(ret_use, USE_MAX, "nothing: %s", strategy->instead);
    else if (strategy->guarantee == GUARANTEE_SAFE && !fits)
        return NULL;
    else if (strategy->guarantee == GUARANTEE_SAFE) /* it may be used for all: what it suits says more */
        snprintf(ret_use, USE_MAX, "%s", fits);
    else
        snprintf(ret_use, USE_MAX, "%s%s%s", use, fits ? "; " : "", fits ? fits : "");
    return ret_use;
}

const struct lock_driver *strategy_lock(const char *name)
{
    const struct strategy *strategy = strategy_find(name);
    return strategy ? strategy->lock : NULL;
}

const struct lock_server *strategy_server(const struct strategy *strategy)
{
    if (strategy->combining == COMBINE_IN_REDIS)
        return &redis_server;
    return strategy->lock ? strategy->lock->server : NULL;
}

bool strategy_has_steps(const struct strategy *strategy)
{
    return strategy->combining == COMBINE_NONE || strategy->combining == COMBINE_IN_TURN;
}

size_t strategy_index(const struct strategy *strategy)
{
    return (size_t)(strategy - strategies);
}
