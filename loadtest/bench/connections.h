/* Places orders over many connections at once, to measure the service's memory and the latency of its answers. */
#ifndef OVERSELL_LOADTEST_BENCH_CONNECTIONS_H
#define OVERSELL_LOADTEST_BENCH_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens CONNECTIONS connections to the service at URL ("http://127.0.0.1:PORT") and places ORDERS orders of the product over
 * each, on all at the same time. Reads the resident memory of process PID while all stay open. False on a failure, with a
 * message on stderr. */
bool memory_with_connections(const char *url, pid_t pid, int64_t product, int64_t connections, int64_t orders,
                             double *ret_mib);

struct latencies {
    double median_ms, p99_ms; /* from the send of an order to the last byte of its answer */
    int64_t orders;           /* placed in all, with those that warm the service up */
};
/* Places orders of the product over CONNECTIONS connections for MS milliseconds; each sends its next order after the answer to
 * the last. False on a failure, with a message on stderr unless it was an interrupt. */
bool latencies_with_connections(const char *url, int64_t product, int64_t connections, int64_t ms,
                                struct latencies *ret_latencies);

#endif
