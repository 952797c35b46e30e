/* How much processor time a hypervisor withheld from this machine and gave to others. */
#include "loadtest/stats/cpu_steal.h"

#include <inttypes.h>
#include <stdio.h>

/* The fields of the line "cpu": user, nice, system, idle, iowait, irq, softirq, steal. Guests' time is part of user and nice. */
#define FIELDS 8
#define STEAL 7

bool cpu_ticks_read(struct cpu_ticks *ret_ticks)
{
    uint64_t field[FIELDS];
    *ret_ticks = (struct cpu_ticks){0};
    FILE *stat = fopen("/proc/stat", "re");
    if (!stat)
        return false;
    int read = fscanf(
        stat,
        "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
        &field[0], &field[1], &field[2], &field[3], &field[4], &field[5], &field[6], &field[STEAL]);
    fclose(stat);
    if (read != FIELDS)
        return false;
    for (int i = 0; i < FIELDS; i++)
        ret_ticks->all += field[i];
    ret_ticks->stolen = field[STEAL];
    return true;
}

double cpu_stolen_percent(const struct cpu_ticks *before, const struct cpu_ticks *after)
{
    if (after->all <= before->all || after->stolen <= before->stolen)
        return 0;
    return 100 * (double)(after->stolen - before->stolen) / (double)(after->all - before->all);
}
