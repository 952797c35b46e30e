/* Opens the gate for `loadtest explore shop.json`: finds the servers in the addresses of shop.json, and puts the gate into them. */
#include "db/postgres/connection.h"
#include "loadtest/cli/complain.h"
#include "loadtest/own/schedules/explore_own_impl.h"
#include "lock/redis/client/url.h"

#include <stdlib.h>
#include <string.h>

enum { LIBPQ_MAX = 8 };

/* Writes URL with the gate's address in place of the server's. False: it has another form. */
static bool point_to_gate(const char *url, unsigned port, char *ret_url, size_t size)
{
    const char *scheme = strstr(url, "://");
    if (!scheme)
        return false;
    const char *begin = scheme + 3, *end = begin + strcspn(begin, "/?"), *host = begin;
    for (const char *at = begin; at < end; at++)
        if (*at == '@')
            host = at + 1;
    int length = snprintf(ret_url, size, "%.*s127.0.0.1:%u%s", (int)(host - url), url, port, end);
    return length > 0 && (size_t)length < size;
}

/* For the gate, from the address of Redis. */
static bool open_redis(struct explore_own *explore, struct redis_url *ret_url)
{
    const char *url = explore->servers.redis, *why = "";
    char reason[300];
    if (!redis_url_read(url, strlen(url), ret_url, &why))
        snprintf(reason, sizeof reason, "%s", why);
    else
        explore->redis = redis_control_open(url, reason, sizeof reason);
    if (!explore->redis)
        shop_complain(&explore->description, explore->description.redis ? "redis" : "",
                      "needs a Redis that explore can use: %s. Start Redis, or correct the address", reason);
    return explore->redis != NULL;
}

bool explore_own_open_gate(struct explore_own *explore)
{
    const char *url = explore->servers.postgres, *redis = explore->servers.redis;
    struct gate_server servers[] = {
        [RUNS_POSTGRES] = {&postgres_protocol, "127.0.0.1", postgres_protocol.port},
        [RUNS_REDIS] = {&redis_protocol},
    };
    struct redis_url redis_url;
    char *variables[LIBPQ_MAX + 1] = {0};
    if (redis && !open_redis(explore, &redis_url))
        return false;
    servers[RUNS_REDIS].host = redis_url.host;
    servers[RUNS_REDIS].port = redis_url.port;
    bool is_read = db_url_environment(url, variables, LIBPQ_MAX);
    for (size_t i = 0; variables[i]; i++) {
        if (strncmp(variables[i], "PGHOST=", 7) == 0)
            servers[RUNS_POSTGRES].host = variables[i] + 7;
        if (strncmp(variables[i], "PGPORT=", 7) == 0)
            servers[RUNS_POSTGRES].port = variables[i] + 7;
    }
    explore->gate = is_read ? gate_open(servers, redis ? 2 : 1) : NULL;
    for (size_t i = 0; variables[i]; i++)
        free(variables[i]);
    if (!explore->gate)
        return false;
    if (!point_to_gate(url, gate_port(explore->gate, RUNS_POSTGRES), explore->gate_url,
                       sizeof explore->gate_url))
        complain("database: explore needs an address of the form postgresql://USER:PASSWORD@HOST:PORT/NAME");
    else if (redis && !point_to_gate(redis, gate_port(explore->gate, RUNS_REDIS), explore->redis_url,
                                     sizeof explore->redis_url))
        complain("redis: explore needs an address of the form redis://USER:PASSWORD@HOST:PORT/NUMBER");
    else
        return true;
    return false;
}
