/* Where the programs and scripts are that the load test runs: beside it in the build, or installed. */
#include "loadtest/testbed/paths.h"

#include "loadtest/cli/complain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES_MAX 4

struct wanted {
    const char *what;
    const char *variable;
    int access;                     /* for access(2) */
    const char *places[PLACES_MAX]; /* relative to the folder of this program */
};

/* A build folder is build/ or, for the sanitizers, build/asan/. */
static const struct wanted STACK = {
    "the script that starts the private servers",
    "OVERSELL_STACK",
    X_OK,
    {"../stack/stack", "../../stack/stack", "../share/oversell/stack/stack"},
};

static const struct wanted SERVICE = {
    "the order service",
    "OVERSELL_SERVICE",
    X_OK,
    {"order-service"},
};

static const struct wanted ORDER_LUA = {
    "the script for wrk",
    "OVERSELL_ORDER_LUA",
    R_OK,
    {"../loadtest/compare/order.lua", "../../loadtest/compare/order.lua",
     "../share/oversell/loadtest/order.lua", "../share/oversell/order.lua"},
};

static const struct wanted PAGES_LUA = {
    "the script for wrk that plays open pages",
    "OVERSELL_PAGES_LUA",
    R_OK,
    {"../loadtest/compare/pages.lua", "../../loadtest/compare/pages.lua",
     "../share/oversell/loadtest/pages.lua", "../share/oversell/pages.lua"},
};

static const struct wanted KAZOO_LOCK = {
    "the script that uses kazoo's lock",
    "OVERSELL_KAZOO_LOCK",
    R_OK,
    {"../loadtest/bench/kazoo_lock.py", "../../loadtest/bench/kazoo_lock.py",
     "../share/oversell/loadtest/kazoo_lock.py", "../share/oversell/kazoo_lock.py"},
};

static const struct wanted CLOCK = {
    "the clock that can be set wrong",
    "OVERSELL_CLOCK_SHIM",
    R_OK,
    {"clock-shim.so"},
};

static const struct wanted DISK = {
    "the disk that can be full",
    "OVERSELL_DISK_SHIM",
    R_OK,
    {"disk-shim.so"},
};

static bool is_usable(const char *path, int mode, char *ret_path)
{
    char real[PATH_MAX];
    if (access(path, mode) != 0 || !realpath(path, real))
        return false;
    memcpy(ret_path, real, sizeof real);
    return true;
}

static bool find(const struct wanted *wanted, char *ret_path)
{
    const char *named = getenv(wanted->variable);
    if (named && *named) {
        if (is_usable(named, wanted->access, ret_path))
            return true;
        complain("%s names %s, which cannot be used", wanted->variable, named);
        return false;
    }
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = 0;
    char *slash = strrchr(own, '/');
    if (slash)
        slash[1] = 0;
    for (size_t i = 0; i < PLACES_MAX && wanted->places[i]; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s%s", own, wanted->places[i]) < (int)sizeof path &&
            is_usable(path, wanted->access, ret_path))
            return true;
    }
    complain("%s is not beside %s: build it, or name it in %s", wanted->what, own, wanted->variable);
    return false;
}

bool path_of_stack(char *ret_path)
{
    return find(&STACK, ret_path);
}

bool path_of_service(char *ret_path)
{
    return find(&SERVICE, ret_path);
}

bool path_of_order_lua(char *ret_path)
{
    return find(&ORDER_LUA, ret_path);
}

bool path_of_pages_lua(char *ret_path)
{
    return find(&PAGES_LUA, ret_path);
}

bool path_of_kazoo_lock(char *ret_path)
{
    return find(&KAZOO_LOCK, ret_path);
}

bool path_of_clock(char *ret_path)
{
    return find(&CLOCK, ret_path);
}

bool path_of_disk(char *ret_path)
{
    return find(&DISK, ret_path);
}
