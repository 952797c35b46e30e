/* Which strategies of this program's own table a list means; for commands that run strategies without a service. */
#ifndef OVERSELL_LOADTEST_COMMAND_CHOSEN_STRATEGIES_H
#define OVERSELL_LOADTEST_COMMAND_CHOSEN_STRATEGIES_H

#include "service/engine/strategy.h"

/* Writes the strategies that LIST means (see loadtest/cli/selection.h) to RET_CHOSEN, which has room for STRATEGIES_MAX, in the
 * table's order. Returns how many; 0, with what is valid on stderr: the list is not valid. */
size_t chosen_strategies(const char *list, const struct strategy **ret_chosen);

#endif
