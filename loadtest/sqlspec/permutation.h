/* Runs the steps of a specification in one given sequence, with the rules of PostgreSQL's isolation tester. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_PERMUTATION_H
#define OVERSELL_LOADTEST_SQLSPEC_PERMUTATION_H

#include "loadtest/sqlspec/connections.h"

#include <stdio.h>

/* Runs setup, the steps and teardown, and reports events as they happen:
 *   {"event": "starting", "steps": [name…]}
 *   {"event": "step", "step": name, "session": name, "sql": text, "results": […]}           it ended without having waited
 *   {"event": "waiting", "step": name, "sql": text, "for": [session…]}
 *   {"event": "completed", "step": name, "results": […]}                   it ended after it had waited
 *   {"event": "notice", "session": name, "text": text}
 *   {"event": "cancelled", "step": name, "ms": N, "why": text}             it took too long, or waited for WHY, which nothing could release
 *   {"event": "rows", "results": […]}                                      what setup or teardown returned
 * ENDS_WAITS: a wait that no step can end is cancelled at once, and not only after the time for a step.
 * *ret_broken: as connections_check_invariants, asked before the teardown of the file.
 * False, having said why on stderr unless it was an interrupt: the steps cannot be run to their ends. */
bool permutation_run(struct connections *connections, const struct spec_permutation *permutation,
                     bool ends_waits, const char **ret_broken);

/* Writes an event as the isolation tester prints it. */
void permutation_print(FILE *stream, const json_t *event);

#endif
