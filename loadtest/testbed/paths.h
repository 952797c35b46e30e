/* Where the programs and scripts are that the load test runs: beside it in the build, or installed. */
#ifndef OVERSELL_LOADTEST_TESTBED_PATHS_H
#define OVERSELL_LOADTEST_TESTBED_PATHS_H

#include <limits.h>
#include <stdbool.h>

/* Each can be named by the environment variable behind it instead. */
enum path {
    PATH_STACK,     /* OVERSELL_STACK */
    PATH_SERVICE,   /* OVERSELL_SERVICE */
    PATH_ORDER_LUA, /* OVERSELL_ORDER_LUA */
    PATH_CLOCK,     /* OVERSELL_CLOCK_SHIM */
    PATH_DISK,      /* OVERSELL_DISK_SHIM */
};

/* Fills a buffer of PATH_MAX bytes. False, having said so on stderr, if there is no such file. Any thread. */
bool path_of(enum path path, char *ret_path);

#endif
