/* The explorer's own commands to the Redis of a user's service, over a connection that does not pass the gate. */
#include "loadtest/own/redis/redis_control.h"

#include "loadtest/cli/complain.h"
#include "lock/redis/client/connection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 5000 };

struct redis_control {
    struct redis *redis;
};

/* ---- opening and closing ------------------------------------------------------------------------------------------ */

struct redis_control *redis_control_open(const char *url, char *ret_why, size_t size)
{
    struct redis_control *control = calloc(1, sizeof *control);
    AUTO_REPLY reply = NULL;
    if (control)
        control->redis = redis_new(url, strlen(url));
    if (!control || !control->redis)
        snprintf(ret_why, size, "out of memory");
    else if (redis_command(control->redis, NULL, ANSWER_MS, &reply, "INFO cluster") != LOCK_OK)
        snprintf(ret_why, size, "%s", redis_error(control->redis));
    else if (reply->str && strstr(reply->str, "cluster_enabled:1"))
        snprintf(ret_why, size, "it is a cluster, and the gate supports one server only");
    else
        return control;
    redis_control_close(control);
    return NULL;
}

void redis_control_close(struct redis_control *control)
{
    if (control)
        redis_free(control->redis);
    free(control);
}

/* ---- questions ---------------------------------------------------------------------------------------------------- */

static bool answered(struct redis_control *control, enum lock_status status)
{
    if (status != LOCK_OK)
        complain("Redis does not do what explore asks of it: %s", redis_error(control->redis));
    return status == LOCK_OK;
}

bool redis_control_flush(struct redis_control *control)
{
    AUTO_REPLY reply = NULL;
    return answered(control, redis_command(control->redis, NULL, ANSWER_MS, &reply, "FLUSHALL"));
}

bool redis_control_key(struct redis_control *control, const char *key, enum redis_key_state *ret_state)
{
    AUTO_REPLY reply = NULL;
    if (!answered(control, redis_command(control->redis, NULL, ANSWER_MS, &reply, "PTTL %s", key)))
        return false;
    int64_t left_ms = redis_integer(reply); /* -2: no such key, -1: no expiry */
    *ret_state = left_ms >= 0 ? REDIS_KEY_EXPIRES : left_ms == -1 ? REDIS_KEY_STAYS : REDIS_KEY_NONE;
    return true;
}

bool redis_control_delete(struct redis_control *control, const char *key)
{
    AUTO_REPLY reply = NULL;
    return answered(control, redis_command(control->redis, NULL, ANSWER_MS, &reply, "DEL %s", key));
}

bool redis_control_changes(struct redis_control *control, int64_t *ret_changes)
{
    static const char NAME[] = "rdb_changes_since_last_save:";
    AUTO_REPLY reply = NULL;
    if (!answered(control, redis_command(control->redis, NULL, ANSWER_MS, &reply, "INFO persistence")))
        return false;
    const char *found = reply->str ? strstr(reply->str, NAME) : NULL;
    *ret_changes = found ? strtoll(found + sizeof NAME - 1, NULL, 10) : 0;
    return true;
}

bool redis_control_waits(struct redis_control *control, unsigned port, bool *ret_waits)
{
    AUTO_REPLY reply = NULL;
    char address[32];
    if (!answered(control, redis_command(control->redis, NULL, ANSWER_MS, &reply, "CLIENT LIST TYPE normal")))
        return false;
    snprintf(address, sizeof address, ":%u ", port);
    *ret_waits = false;
    /* Each client is a line: id=3 addr=127.0.0.1:52555 laddr=… flags=b … */
    for (const char *line = reply->str; line && *line; line = *line ? line + 1 : line) {
        const char *end = line + strcspn(line, "\n"), *addr = strstr(line, " addr="),
                   *flags = strstr(line, " flags=");
        if (addr && flags && addr < end && flags < end) {
            const char *addr_end = addr + 1 + strcspn(addr + 1, " ") + 1;
            size_t length = strlen(address);
            if ((size_t)(addr_end - addr) > length && memcmp(addr_end - length, address, length) == 0)
                *ret_waits = memchr(flags, 'b', strcspn(flags + 1, " ") + 1) != NULL;
        }
        line = end;
    }
    return true;
}
