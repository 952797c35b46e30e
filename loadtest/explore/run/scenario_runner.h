/* Running scenarios, telling what happens, and holding it against what they expect. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_SCENARIO_RUNNER_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_SCENARIO_RUNNER_H

#include "loadtest/explore/run/campaign.h"
#include "loadtest/explore/spec/scenario.h"

/* A scenario, and where it came from. */
struct scenario_from {
    struct scenario scenario;
    char *source; /* "schedules/lost-update.sched:3", malloc'ed; or NULL for one of the command line */
};

struct scenario_list {
    struct scenario_from *item; /* malloc'ed */
    size_t count;
};

/* Adds what FILE_OR_SCENARIO means: a file's scenarios, or one in the short form. False, having said why on stderr. */
bool scenario_list_add(struct scenario_list *list, const char *file_or_scenario);
void scenario_list_free(struct scenario_list *list);
/* The strategies that they are about, with commas between, malloc'ed; NULL when out of memory. */
char *scenario_list_strategies(const struct scenario_list *list);

/* Runs all of them, and prints each on OUT as soon as it has been run: as columns, or where OUT is NULL not at all.
 * Returns an array of what they came to, a new reference; NULL when out of memory. *RET_STATUS: enum exit_status. */
json_t *scenario_list_run(const struct scenario_list *list, struct product_schema *schema, const char *url,
                          FILE *out, int *ret_status);

#endif
