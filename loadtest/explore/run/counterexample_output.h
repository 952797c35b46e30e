/* Counterexamples of the rows that were found: printed, or written as scenario files. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_COUNTEREXAMPLE_OUTPUT_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_COUNTEREXAMPLE_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>

/* Prints the counterexamples of all ROWS on stdout, each as a table with a column for each order, and its explanation. */
void print_counterexamples(const json_t *rows);

/* Writes the first counterexample of each row to DIR/STRATEGY.sched, a scenario file that expects the same result: a
 * regression test for --replay. Makes DIR if it is missing. False, with the reason on stderr. */
bool save_counterexamples(const json_t *rows, const char *dir);

#endif
