/* Where the programs and scripts are that the load test runs: beside it in the build, or installed. */
#include "loadtest/testbed/paths.h"

#include "loadtest/cli/complain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES_MAX 4

/* A build folder is build/ or, for the sanitizers, build/asan/. */
static const struct {
    const char *what;
    const char *variable;
    int access;                     /* for access(2) */
    const char *places[PLACES_MAX]; /* relative to the folder of this program */
} FILES[] = {
    [PATH_STACK] = {"the script that starts the private servers",
                    "OVERSELL_STACK",
                    X_OK,
                    {"../stack/stack", "../../stack/stack", "../share/oversell/stack/stack"}},
    [PATH_SERVICE] = {"the order service", "OVERSELL_SERVICE", X_OK, {"order-service"}},
    [PATH_ORDER_LUA] = {"the script for wrk",
                        "OVERSELL_ORDER_LUA",
                        R_OK,
                        {"../loadtest/load/order.lua", "../../loadtest/load/order.lua",
                         "../share/oversell/loadtest/order.lua", "../share/oversell/order.lua"}},
    [PATH_CLOCK] = {"the clock that can be set wrong", "OVERSELL_CLOCK_SHIM", R_OK, {"clock-shim.so"}},
    [PATH_DISK] = {"the disk that can be full", "OVERSELL_DISK_SHIM", R_OK, {"disk-shim.so"}},
};

static bool is_usable(const char *path, int mode, char *ret_path)
{
    char real[PATH_MAX];
    if (access(path, mode) != 0 || !realpath(path, real))
        return false;
    memcpy(ret_path, real, sizeof real);
    return true;
}

bool path_of(enum path path, char *ret_path)
{
    const char *named = getenv(FILES[path].variable);
    if (named && *named) {
        if (is_usable(named, FILES[path].access, ret_path))
            return true;
        complain("%s is set to %s, which cannot be used: correct it or unset it", FILES[path].variable,
                 named);
        return false;
    }
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = 0;
    char *slash = strrchr(own, '/');
    if (slash)
        slash[1] = 0;
    for (size_t i = 0; i < PLACES_MAX && FILES[path].places[i]; i++) {
        char place[PATH_MAX];
        if (snprintf(place, sizeof place, "%s%s", own, FILES[path].places[i]) < (int)sizeof place &&
            is_usable(place, FILES[path].access, ret_path))
            return true;
    }
    complain("cannot find %s in %s: run make, or set %s to its path", FILES[path].what, own,
             FILES[path].variable);
    return false;
}
