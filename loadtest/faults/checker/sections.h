/* Checks the traces of a cycle for mutual exclusion: no two orders that a lock excludes may be in their critical sections at the
 * same time.
 *
 * Only orders that were created count. A section reaches from the moment at which the order knew that it had the lock to the begin of
 * its COMMIT, as in service/page/workshop/overlaps.js. The COMMIT's end is no limit: an order whose reply is lost asks for its outcome, perhaps
 * after its lease. (An order that reads meanwhile sees the write; sale_history.h finds one that does not.) A correct lock is granted
 * only after the last holder's COMMIT, and both services use CLOCK_MONOTONIC of one machine, which no fault changes. So sections may
 * touch in one microsecond, and never overlap.
 *
 * Traces may be missing: a killed service loses its own, and a service keeps the last 2048 orders of all products, and shows 1000 of
 * one product. */
#ifndef OVERSELL_LOADTEST_FAULTS_CHECKER_SECTIONS_H
#define OVERSELL_LOADTEST_FAULTS_CHECKER_SECTIONS_H

#include "loadtest/faults/checker/checker.h"

#include <jansson.h>

/* Monotonic times. */
struct section {
    int64_t from_us, to_us;
};

/* Finds the sections of the product's orders that began at SINCE_US or later in an answer of GET /traces. Returns how many, at most
 * ROOM. */
size_t sections_of(const json_t *answer, int64_t product, int64_t since_us, struct section *ret_sections,
                   size_t room);
/* Returns how many sections began during another one. Sorts SECTIONS. */
size_t sections_overlapping(struct section *sections, size_t count);

/* Returns how many orders of the product had read or taken the stock at AT_US, and had not ended. An order that is one
 * statement counts from the begin of that statement. */
size_t moments_of(const json_t *answer, int64_t product, int64_t at_us);

/* Adds the orders of the product that were so at AT_US, from the traces of both services, to COUNTS. False, with the reason on stderr. */
bool fault_moments_check(struct fault_testbed *testbed, int64_t product, int64_t at_us,
                         struct fault_counts *counts);
/* Adds the sections and overlaps of the product since SINCE_US, from the traces of both services, to COUNTS. False, with the reason
 * on stderr. */
bool fault_sections_check(struct fault_testbed *testbed, int64_t product, int64_t since_us,
                          struct fault_counts *counts);

#endif
