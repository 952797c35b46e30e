/* Explores several strategies at the same time, in worker processes, each with its own schema. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_WORKER_PROCESSES_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_WORKER_PROCESSES_H

#include "loadtest/explore/run/explore_strategy.h"

/* Explores each of COUNT strategies by one of at most MOST processes. ADDRESSES: where the servers are. RET_ROWS gets
 * a row for each, in order, new references; NULL for those that were not finished, and then it returns false, having said why on
 * stderr unless it was an interrupt. */
bool worker_processes_run(const struct explore_plan *plan, const struct lock_config *addresses,
                          const struct strategy *const *chosen, size_t count, size_t most, json_t **ret_rows);

#endif
