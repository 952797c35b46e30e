/* Witnesses as files: what was found once is a regression test from then on. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_SAVE_COUNTEREXAMPLES_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_SAVE_COUNTEREXAMPLES_H

#include <jansson.h>
#include <stdbool.h>

/* Writes the witness of each of ROWS to DIR/STRATEGY.sched, making DIR where it is missing. False, having said why. */
bool save_counterexamples(const json_t *rows, const char *dir);

#endif
