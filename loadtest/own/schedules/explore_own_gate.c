/* Opens the gate for `loadtest explore shop.json`: finds the servers in the addresses of shop.json, and puts the gate into them. */
#include "db/postgres/connection.h"
#include "loadtest/cli/complain.h"
#include "loadtest/own/schedules/explore_own_impl.h"
#include "lock/redis/client/url.h"

#include <stdlib.h>
#include <string.h>

enum { LIBPQ_MAX = 16, TRY_MS = 10000 };

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

/* The value of NAME among VARIABLES, "NAME=value", which NULL ends; NULL. */
static const char *value_of(char *const *variables, const char *name)
{
    size_t length = strlen(name);
    for (; *variables; variables++)
        if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=')
            return *variables + length + 1;
    return NULL;
}

/* The gate has no TLS, so what needs it would fail in the service, in words of its driver. */
static bool needs_no_tls(const struct shop_description *description, char *const *variables)
{
    static const struct {
        const char *variable, *parameter, *value;
    } NEEDS[] = {{"PGSSLMODE", "sslmode", "require"},
                 {"PGSSLMODE", "sslmode", "verify-ca"},
                 {"PGSSLMODE", "sslmode", "verify-full"},
                 {"PGCHANNELBINDING", "channel_binding", "require"}};
    for (size_t i = 0; i < sizeof NEEDS / sizeof *NEEDS; i++) {
        const char *value = value_of(variables, NEEDS[i].variable);
        if (!value || strcmp(value, NEEDS[i].value) != 0)
            continue;
        shop_complain(
            description, "database",
            "says %s=%s, and the gate of explore has no TLS. Name a database for tests that can be used "
            "without TLS, or leave out \"database\": then a private one is started",
            NEEDS[i].parameter, value);
        return false;
    }
    return true;
}

/* A server may accept TLS only. The service would learn it as a failed login. */
static bool try_gate(const struct shop_description *description, const char *gate_url)
{
    char url[GATE_URL + 32];
    snprintf(url, sizeof url, "%s%csslmode=disable", gate_url, strchr(gate_url, '?') ? '&' : '?');
    struct db *db = db_new(url, "loadtest");
    if (!db) {
        complain("out of memory");
        return false;
    }
    int64_t until_us = monotonic_us() + (int64_t)TRY_MS * 1000;
    db_set_deadline(db, until_us, until_us);
    bool ok = db_ready(db) == DB_OK;
    if (!ok)
        shop_complain(
            description, "database",
            "cannot be used through the gate, which has no TLS: %s. Allow this connection without TLS in the "
            "server's pg_hba.conf, or leave out \"database\": then a private one is started",
            db_error(db));
    db_free(db);
    return ok;
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
    bool ok = db_url_environment(url, variables, LIBPQ_MAX);
    const char *host = value_of(variables, "PGHOST"), *port = value_of(variables, "PGPORT");
    if (host)
        servers[RUNS_POSTGRES].host = host;
    if (port)
        servers[RUNS_POSTGRES].port = port;
    if (!ok)
        complain("out of memory");
    if (ok && needs_no_tls(&explore->description, variables))
        explore->gate = gate_open(servers, redis ? 2 : 1);
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
        return !explore->description.database || try_gate(&explore->description, explore->gate_url);
    return false;
}
