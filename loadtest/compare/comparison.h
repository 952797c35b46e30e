/* Measures several strategies one after the other, for compare and diff. */
#ifndef OVERSELL_LOADTEST_COMPARE_COMPARISON_H
#define OVERSELL_LOADTEST_COMPARE_COMPARISON_H

#include "loadtest/cli/options.h"
#include "loadtest/compare/measure.h"

#include <jansson.h>
#include <stdbool.h>

/* The settings of a comparison: what to measure, and on which services. */
struct comparison {
    struct testbed_settings testbed;
    struct plan plan;
    int64_t repeat;
};

/* The default settings, for one service or several. */
struct comparison comparison_defaults(int64_t instances);

/* Fill a struct comparison, except its testbed, which testbed_options fill. */
extern const struct option_rows comparison_options;

/* Settles what depends on other settings, once they have been parsed. False, having said on stderr what is wrong with them. */
bool comparison_settle(struct comparison *comparison);
/* The settings as they stand in a result. */
json_t *comparison_settings(const struct comparison *comparison, const struct testbed *testbed,
                            const json_t *strategies);
/* Measures the STRATEGIES, rows of GET /strategies, and returns their rows; the services' own strategy is
 * set again afterwards where they were there before. NULL, having said why on stderr unless it was an
 * interrupt. */
json_t *comparison_run(const struct comparison *comparison, struct testbed *testbed,
                       const json_t *strategies);

/* The strategies of services that were there before, of one product or in common (PRODUCT 0); NULL where the testbed has started them, or where it is not known. */
void strategies_remember(struct testbed *testbed, int64_t product, json_t *ret_before[INSTANCES_MAX]);
/* Gives them back, also after an interrupt, and releases them. */
void strategies_restore(struct testbed *testbed, int64_t product, json_t *before[INSTANCES_MAX]);

#endif
