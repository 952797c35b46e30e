/* Where the programs and scripts are that the load test runs: beside it in the build, or installed. */
#ifndef OVERSELL_LOADTEST_TESTBED_PATHS_H
#define OVERSELL_LOADTEST_TESTBED_PATHS_H

#include <limits.h>
#include <stdbool.h>

/* Each fills a buffer of PATH_MAX bytes. False, having said so on stderr: there is none. The environment
 * variables OVERSELL_STACK, OVERSELL_SERVICE, OVERSELL_ORDER_LUA, OVERSELL_PAGES_LUA, OVERSELL_KAZOO_LOCK, OVERSELL_CLOCK_SHIM and
 * OVERSELL_DISK_SHIM name another file. */
bool path_of_stack(char *ret_path);
bool path_of_service(char *ret_path);
bool path_of_order_lua(char *ret_path);
bool path_of_pages_lua(char *ret_path);
bool path_of_kazoo_lock(char *ret_path);
bool path_of_clock(char *ret_path);
bool path_of_disk(char *ret_path);

#endif
