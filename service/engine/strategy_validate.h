/* Checks whether the engine can run a row of the strategy table, and explains a wrong row in one sentence. Without this
 * check a wrong row would crash the process in the middle of an order. The load lab, not this file, tests the guarantee. */
#ifndef OVERSELL_SERVICE_ENGINE_STRATEGY_VALIDATE_H
#define OVERSELL_SERVICE_ENGINE_STRATEGY_VALIDATE_H

#include "service/engine/strategy.h"

#include <stdbool.h>

/* False: RET_ERROR of SIZE bytes says which cell of ROW is wrong, and what to change. Any thread may call. */
bool strategy_validate(const struct strategy *row, char *ret_error, size_t size);

/* The same for the whole table, whose names must be unique. To be called once, when a program starts. */
bool strategies_validate(char *ret_error, size_t size);

#endif
