/* The traces of a cycle, checked for mutual exclusion: of orders that a lock keeps apart, no two are in their critical
 * sections at the same time.
 *
 * As in service/page/overlaps.js only orders count that were created, and a section counts for as long as the order was in
 * it for certain: here from when it was told that it has the lock until it began to COMMIT. The COMMIT's end is no measure,
 * since an order whose reply is lost asks what became of it, after its lease maybe; who reads in the meantime sees what it
 * wrote, and who does not is found by loadtest/faults/checker/sale_history.h. A lock that excludes is granted only after its last holder has been
 * told of the COMMIT, and both services take CLOCK_MONOTONIC of one machine, which no fault shifts: sections may touch in a
 * microsecond and never overlap, so no tolerance is needed.
 *
 * Looked at is what is left: a service that was killed has taken its traces with it; one that lives keeps the last 2048
 * orders that were placed, of all products together, and shows the last thousand of a product. */
#ifndef OVERSELL_LOADTEST_FAULTS_CHECKER_SECTIONS_H
#define OVERSELL_LOADTEST_FAULTS_CHECKER_SECTIONS_H

#include "loadtest/faults/checker/checker.h"

#include <jansson.h>

/* Monotonic. */
struct section {
    int64_t from_us, to_us;
};

/* The sections of a product's orders that began at SINCE_US or later, of an answer of GET /traces: how many; ROOM at most. */
size_t sections_of(const json_t *answer, int64_t product, int64_t since_us, struct section *ret_sections,
                   size_t room);
/* How many began while another was not over. Sorts SECTIONS. */
size_t sections_overlapping(struct section *sections, size_t count);

/* Adds what both services' traces say of the product since SINCE_US to COUNTS. False, having said why. */
bool fault_sections_check(struct fault_testbed *testbed, int64_t product, int64_t since_us,
                          struct fault_counts *counts);

#endif
