/* Runs all interleavings of the sessions of a specification, and counts and names their outcomes. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_SPEC_SEARCH_H
#define OVERSELL_LOADTEST_SQLSPEC_SPEC_SEARCH_H

#include "loadtest/sqlspec/connections.h"
#include "loadtest/sqlspec/spec_options.h"

/* Returns {"rows": […], "schedules": N, "complete": bool, "coverage": 0…1, "outcomes": N, "serial_orders": N, "seconds": S,
 * "warnings": [text…]}. A row is a kind of outcome: {"outcome": name, "sessions": "s1, s2", "schedules": N, "share": 0…1, "schedule":
 * steps, "text": explanation, "code": SQLSTATE, "broken_invariant": SQL or null, "results": {session: {step: results}}, "tables":
 * rows, "verdict": name}. NULL, having said why on stderr unless it was an interrupt. One thread. */
json_t *spec_search(struct connections *connections, const struct spec_settings *settings);

#endif
