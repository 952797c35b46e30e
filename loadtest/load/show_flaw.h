/* Shows the flaw of a strategy that load alone did not break: one schedule, run on the same servers, with the event that breaks
 * it. */
#ifndef OVERSELL_LOADTEST_LOAD_SHOW_FLAW_H
#define OVERSELL_LOADTEST_LOAD_SHOW_FLAW_H

#include "loadtest/testbed/testbed.h"

#include <jansson.h>
#include <stdbool.h>

/* Adds the member "shown" to ROW, a row of `loadtest compare`: how the strategy fails and what was seen.
 *   breaks_when  "lease expires: sold 2 of 1", a phrase for people
 *   by           "load", "second-process", "expire" or "crash"
 *   replay, told, explanation   of the schedule; null where load showed the flaw. replay is null for "second-process"
 * Rows that oversold under load need no schedule. For a row with the verdict "flawed" the explorer searches for one, in separate
 * processes, for seconds at most; if there is none the verdict becomes "not-caught", with a "finding". Rows of services that this
 * process has not started, and safe rows, have null, as has a row whose search could not be finished. False: out of memory. For one
 * thread. */
bool show_flaw(const struct testbed *testbed, json_t *row);

#endif
