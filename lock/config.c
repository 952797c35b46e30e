/* The locks' configuration: where their servers are and what their keys begin with, read and checked before the first lock
 * is opened. */
#include "lock/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX_MAX = 32 }; /* with the longest name it still fits into every lock's keys */

struct lock_config lock_config = {"", "", "", "", "", "oversell", false, 0};

void lock_configure(const struct lock_config *config)
{
    lock_config = *config;
}

bool lock_is_prefix(const char *prefix)
{
    size_t length = strspn(prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return length > 0 && length <= PREFIX_MAX && !prefix[length] && prefix[0] != '.';
}

bool lock_next_server(const char **list, const char **ret_server, size_t *ret_size)
{
    *list += strspn(*list, ", ");
    *ret_server = *list;
    *ret_size = strcspn(*list, ", ");
    *list += *ret_size;
    return *ret_size > 0;
}

int lock_count_servers(const char *list)
{
    const char *server;
    size_t size;
    int count = 0;
    while (lock_next_server(&list, &server, &size))
        count++;
    return count;
}

/* True as well where LIST is empty: then there is no such server. */
static bool check_list(const char *setting, const char *list, int most, char *ret_error, size_t size)
{
    int count = lock_count_servers(list);
    if (!*list || (count >= 1 && count <= most))
        return true;
    snprintf(ret_error, size, "%s names %d servers; valid: 1 to %d", setting, count, most);
    return false;
}

static const char *from_environment(const char *variable, const char *otherwise)
{
    const char *value = getenv(variable);
    return value && *value ? value : otherwise;
}

bool lock_configure_from_environment(char *ret_error, size_t size)
{
    lock_configure(&(struct lock_config){
        .database_url = from_environment("LOCK_DATABASE_URL", from_environment("DATABASE_URL", "")),
        .redis_url = from_environment("REDIS_URL", ""),
        .redlock_urls = from_environment("REDLOCK_URLS", ""),
        .zookeeper_connect = from_environment("ZOOKEEPER_CONNECT", ""),
        .etcd_endpoints = from_environment("ETCD_ENDPOINTS", ""),
        .prefix = from_environment("LOCK_PREFIX", "oversell"),
    });
    if (!lock_is_prefix(lock_config.prefix)) {
        snprintf(ret_error, size, "LOCK_PREFIX is not valid; valid: %s", LOCK_PREFIX_RULE);
        return false;
    }
    return check_list("REDLOCK_URLS", lock_config.redlock_urls, LOCK_REDLOCK_MOST, ret_error, size) &&
           check_list("ETCD_ENDPOINTS", lock_config.etcd_endpoints, LOCK_ETCD_MOST, ret_error, size);
}
