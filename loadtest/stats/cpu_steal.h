/* How much processor time a hypervisor withheld from this machine and gave to others. */
#ifndef OVERSELL_LOADTEST_STATS_CPU_STEAL_H
#define OVERSELL_LOADTEST_STATS_CPU_STEAL_H

#include <stdbool.h>
#include <stdint.h>

/* Times of all processors since the start of the machine, in clock ticks. */
struct cpu_ticks {
    uint64_t all; /* idle time included */
    uint64_t stolen;
};

/* Reads the times from /proc/stat (its fields: proc(5)). False if the system does not have them; *RET_TICKS is then empty. */
bool cpu_ticks_read(struct cpu_ticks *ret_ticks);
/* Stolen time between two moments, in percent of the time of all processors: 0 to 100. */
double cpu_stolen_percent(const struct cpu_ticks *before, const struct cpu_ticks *after);

#endif
