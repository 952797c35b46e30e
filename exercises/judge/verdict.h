/* Prints the results of all checks for the learner, and writes them to results.json for graders. */
#ifndef OVERSELL_EXERCISES_VERDICT_H
#define OVERSELL_EXERCISES_VERDICT_H

#include "exercises/judge/check.h"

/* Prints one check's result on stdout. */
void verdict_print(const struct check *check, const struct result *result);

/* Prints how many checks have passed, failed and were skipped, and what to do next. True if all have passed. */
bool verdict_print_sum(const struct task *task, const struct result *results);

/* Writes results.json in the form of exercism's test runners, version 2
 * (https://exercism.org/docs/building/tooling/test-runners/interface): pass, or fail, or error if no check could
 * run. That format has no skipped checks, so they count as errors there. */
bool verdict_write(const char *path, const struct task *task, const struct result *results);
/* The same if nothing could run; MESSAGE says why. */
bool verdict_write_error(const char *path, const char *message);

/* Does the results.json at PATH say that all have passed? */
bool verdict_has_passed(const char *path);

#endif
