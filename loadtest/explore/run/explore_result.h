/* How a result of `loadtest explore` is printed, and its counterexamples printed or saved. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_EXPLORE_RESULT_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_EXPLORE_RESULT_H

#include "loadtest/chart/chart.h"
#include "loadtest/report/table.h"

extern const struct result_kind explore_result;

/* The pictures of a report; see struct result_kind. */
json_t *explore_charts(const json_t *document);
/* Adds the counterexamples of the first rows that have one, as lanes. */
void explore_add_counterexamples(struct charts *charts, const json_t *rows);

/* Prints the counterexamples of all ROWS on stdout, each as a table with a column for each order, and its explanation. */
void print_counterexamples(const json_t *rows);

/* Writes the first counterexample of each row to DIR/STRATEGY.sched, a scenario file that expects the same result: a
 * regression test for --replay. Makes DIR if it is missing. False, with the reason on stderr. */
bool save_counterexamples(const json_t *rows, const char *dir);

#endif
