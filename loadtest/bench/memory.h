/* Measures the memory of a service while many clients stay connected. */
#ifndef OVERSELL_LOADTEST_BENCH_MEMORY_H
#define OVERSELL_LOADTEST_BENCH_MEMORY_H

#include "loadtest/testbed/testbed.h"

/* Opens CONNECTIONS connections to the testbed's only service and places ORDERS orders of the product over each, on all at the
 * same time. Reads the service's resident memory while all stay open. False, having said why on stderr unless it was an
 * interrupt. */
bool memory_with_connections(const struct testbed *testbed, int64_t product, int64_t connections,
                             int64_t orders, double *ret_mib);

#endif
