/* What a service keeps in memory while many clients stay connected. */
#ifndef OVERSELL_LOADTEST_BENCH_MEMORY_H
#define OVERSELL_LOADTEST_BENCH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens so many connections to the service at URL ("http://127.0.0.1:PORT"), places ORDERS of the product over each,
 * all of them at the same time, and reads how much of process PID is resident while all stay open. False, having
 * said why on stderr. */
bool memory_with_connections(const char *url, pid_t pid, int64_t product, int64_t connections, int64_t orders,
                             double *ret_mib);

#endif
