/* Measures several strategies one after the other, for compare and diff. */
#ifndef OVERSELL_LOADTEST_LOAD_COMPARISON_H
#define OVERSELL_LOADTEST_LOAD_COMPARISON_H

#include "loadtest/cli/options.h"
#include "loadtest/load/measure.h"

#include <jansson.h>
#include <stdbool.h>

/* The settings of a comparison: what to measure, and on which services. */
struct comparison {
    struct testbed_settings testbed;
    struct plan plan;
    int64_t repeat;
    void (*on_row)(const json_t *row); /* called with each row when it is there; NULL: nothing */
    /* adds the event that breaks each strategy which load alone did not break: show_flaw.h */
    bool shows_flaws;
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

/* Measures one strategy, a row of GET /strategies, and returns its row of the result. NULL, having said why on stderr unless it
 * was an interrupt. */
typedef json_t *measure_strategy_fn(const void *context, struct testbed *testbed, const json_t *strategy,
                                    struct progress *progress);
/* Measures the STRATEGIES one after the other, each as STEPS steps of the progress bar, and returns their rows. Afterwards
 * services that were there before have their own strategy again, of one product or all (PRODUCT 0). After an interrupt the rows that are
 * finished, if there are any. NULL as above. */
json_t *measure_strategies(struct testbed *testbed, int64_t product, const json_t *strategies, int64_t steps,
                           measure_strategy_fn *measure_one, const void *context);

#endif
