/* Finds circles among those that wait for each other. Pure functions. */
#ifndef OVERSELL_LOADTEST_SEARCH_WAITS_H
#define OVERSELL_LOADTEST_SEARCH_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does one of the COUNT (31 at most) wait for itself, by way of others? WAITS_FOR[i]: bits of those that i waits for; further bits are of
 * strangers, who wait for nobody. */
bool waits_have_circle(const uint32_t *waits_for, size_t count);

#endif
