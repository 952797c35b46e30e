/* The path of the load test's program, and the environment that the service starts it with. */
#include "service/runs/lab_program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool lab_program(char *ret_path, size_t size)
{
    const char *named = getenv("OVERSELL_LOADTEST");
    if (named && *named)
        return snprintf(ret_path, size, "%s", named) < (int)size;
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    return slash && snprintf(ret_path, size, "%.*s/loadtest", (int)(slash - own), own) < (int)size;
}

char **lab_environment(const struct config *config, size_t *ret_ours)
{
    const struct {
        const char *name, *value; /* "": taken away */
    } ours[] = {
        {"DATABASE_URL", config->database_url},
        {"LOCK_DATABASE_URL", config->lock_database_url},
        {"REDIS_URL", config->redis_url},
        {"REDLOCK_URLS", config->redlock_urls},
        {"ZOOKEEPER_CONNECT", config->zookeeper_connect},
        {"ETCD_ENDPOINTS", config->etcd_endpoints},
        {"LOCK_PREFIX", config->lock_prefix},
        {"ADMIN_TOKEN", config->admin_token},
        {"ADMIN_TOKEN_FILE", ""},
        {"CLASSROOM", ""},
        {"LISTEN", ""},
        {"PORT_FILE", ""},
        {"INSTANCE", ""},
        {"LOG_LEVEL", "warning"},
    };
    enum { OURS = sizeof ours / sizeof ours[0] };
    size_t inherited = 0, count = 0;
    while (environ[inherited])
        inherited++;
    char **env = calloc(inherited + OURS + 1, sizeof *env);
    *ret_ours = 0;
    if (!env)
        return NULL;
    for (size_t i = 0; i < OURS; i++)
        if (ours[i].value[0] && asprintf(&env[count], "%s=%s", ours[i].name, ours[i].value) > 0)
            count++;
    *ret_ours = count;
    for (size_t i = 0; i < inherited; i++) {
        size_t length = strcspn(environ[i], "="), j = 0;
        while (j < OURS && (strlen(ours[j].name) != length || strncmp(ours[j].name, environ[i], length) != 0))
            j++;
        if (j == OURS)
            env[count++] = environ[i];
    }
    return env;
}

void lab_environment_free(char **env, size_t ours)
{
    for (size_t i = 0; env && i < ours; i++)
        free(env[i]);
    free(env);
}
