/* Is a strategy's row one that the engine can run? A wrong row is explained in a sentence, instead of a crash in the middle of
 * an order. What a row promises is not judged here: the load lab does that. */
#ifndef OVERSELL_SERVICE_STRATEGY_VALIDATE_H
#define OVERSELL_SERVICE_STRATEGY_VALIDATE_H

#include "service/strategy.h"

#include <stdbool.h>

/* False, with RET_ERROR of SIZE bytes: which cell of ROW is wrong, and what to change. Any thread may call. */
bool strategy_validate(const struct strategy *row, char *ret_error, size_t size);

/* The same for the whole table, whose names must be unique. To be called once, when a program starts. */
bool strategies_validate(char *ret_error, size_t size);

#endif
