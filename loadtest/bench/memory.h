/* Measures the memory of a service while many clients stay connected. */
#ifndef OVERSELL_LOADTEST_BENCH_MEMORY_H
#define OVERSELL_LOADTEST_BENCH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens CONNECTIONS connections to the service at URL ("http://127.0.0.1:PORT") and places ORDERS orders of the product over
 * each, on all at the same time. Reads the resident memory of process PID while all stay open. False on a failure, with a
 * message on stderr. */
bool memory_with_connections(const char *url, pid_t pid, int64_t product, int64_t connections, int64_t orders,
                             double *ret_mib);

#endif
