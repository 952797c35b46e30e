/* How a result of `loadtest explore` is printed. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_EXPLORE_RESULT_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_EXPLORE_RESULT_H

#include "loadtest/report/table.h"

extern const struct result_kind explore_result;

#endif
