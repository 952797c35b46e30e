/* The verdict on a learner's strategy: as text, and as results.json. */
#ifndef OVERSELL_EXERCISES_VERDICT_H
#define OVERSELL_EXERCISES_VERDICT_H

#include "exercises/judge/check.h"

/* Prints one check's result on stdout. */
void verdict_print(const struct check *check, const struct result *result);

/* Prints how many of each there were, and what one may do next. True if all have passed. */
bool verdict_print_sum(const struct task *task, const struct result *results);

/* Writes results.json in the form of exercism's test runners, version 2
 * (https://exercism.org/docs/building/tooling/test-runners/interface): pass, or fail, or error where no check could be
 * made. That form knows nothing skipped, and what was skipped has not passed: it is an error there. */
bool verdict_write(const char *path, const struct task *task, const struct result *results);
/* The same where nothing was run, because of MESSAGE. */
bool verdict_write_error(const char *path, const char *message);

/* Does the results.json at PATH say that all have passed? */
bool verdict_has_passed(const char *path);

#endif
