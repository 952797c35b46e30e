/* Runs scenarios (explore --replay), narrates each, and compares it with what is expected. For one thread. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_SCENARIO_RUNNER_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_SCENARIO_RUNNER_H

#include "loadtest/explore/run/campaign.h"
#include "loadtest/explore/spec/scenario.h"

/* A scenario, and its source. */
struct scenario_from {
    struct scenario scenario;
    char *source; /* "schedules/lost-update.sched:3", malloc'ed; NULL: the command line */
};

struct scenario_list {
    struct scenario_from *item; /* malloc'ed */
    size_t count;
};

/* Adds what FILE_OR_SCENARIO means: a file's scenarios, or one in the short form. False, having said why on stderr. */
bool scenario_list_add(struct scenario_list *list, const char *file_or_scenario);
void scenario_list_free(struct scenario_list *list);
/* The names of their strategies, with commas between, malloc'ed; NULL when out of memory. */
char *scenario_list_strategies(const struct scenario_list *list);

/* Runs all of them, and prints each on OUT when it has run; OUT may be NULL. Returns their results as an array, a new
 * reference; NULL when out of memory. *RET_STATUS: enum exit_status. */
json_t *scenario_list_run(const struct scenario_list *list, struct product_schema *schema, const char *url,
                          FILE *out, int *ret_status);

#endif
