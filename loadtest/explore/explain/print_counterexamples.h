/* Schedules that went wrong, told one after the other. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXPLAIN_PRINT_COUNTEREXAMPLES_H
#define OVERSELL_LOADTEST_EXPLORE_EXPLAIN_PRINT_COUNTEREXAMPLES_H

#include <jansson.h>

/* Prints all that ROWS have kept, in columns, on stdout. */
void print_counterexamples(const json_t *rows);

#endif
