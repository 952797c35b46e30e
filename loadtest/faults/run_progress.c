/* Draws how far a run of a fault is. */
#include "loadtest/cli/progress.h"
#include "loadtest/faults/fault.h"

#include <inttypes.h>
#include <stdio.h>

void fault_show_progress(const struct fault_run *run)
{
    char detail[120];
    int64_t lost = 0;
    for (size_t i = 0; i < run->count; i++)
        lost += run->subjects[i].counts.lost;
    snprintf(detail, sizeof detail, "; cycle %" PRId64 " of %" PRId64 ": %zu orders, %" PRId64 " lost",
             run->cycle + 1, run->cycles, fault_history_size(run->history), lost);
    progress_update(run->progress, run->cycle < run->cycles ? (double)run->cycle / (double)run->cycles : 1,
                    detail);
}
