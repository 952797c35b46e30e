/* Finds the route of a request by its method and path. */
#include "service/api/router.h"

#include <stdio.h>
#include <string.h>

/* Does PATH fit PATTERN? The segments that meet ":" are copied to ARGUMENT, joined by "/". */
static bool matches(const char *pattern, const char *path, char *argument, size_t size)
{
    size_t used = 0;
    while (*pattern && *path) {
        if (*pattern == ':') {
            size_t length = strcspn(path, "/");
            if (used > 0)
                argument[used++] = '/';
            if (length == 0 || used + length >= size)
                return false;
            memcpy(argument + used, path, length);
            used += length;
            argument[used] = '\0';
            path += length;
            pattern++;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*pattern && !*path;
}

static bool takes(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

enum routing route_find(const struct route *table, const char *method, const char *path,
                        const struct route **ret_route, char *ret_argument, size_t argument_size,
                        char *ret_allow, size_t allow_size)
{
    size_t used = 0;
    for (const struct route *route = table; route->method; route++) {
        if (!matches(route->path, path, ret_argument, argument_size))
            continue;
        if (takes(route, method)) {
            *ret_route = route;
            return ROUTED;
        }
        int added = snprintf(ret_allow + used, allow_size - used, "%s%s%s", used ? ", " : "", route->method,
                             strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
        if (added > 0 && used + (size_t)added < allow_size)
            used += (size_t)added;
    }
    return used ? NO_SUCH_METHOD : NO_SUCH_PATH;
}
