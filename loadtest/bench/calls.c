/* Counts how often a process calls the kernel and the allocator, with perf and the C library's own counter. */
#include "loadtest/bench/calls.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM_CALLS "raw_syscalls:sys_enter"
#define ALLOCATION_COUNTER "libmemusage.so" /* comes with glibc */
#define END_MS 10000
#define SETTLE_MS 500 /* until perf has found all threads */

static void counts_file(const char *dir, char *ret_path)
{
    snprintf(ret_path, PATH_MAX + 16, "%s/perf.counts", dir);
}

bool calls_countable(char *ret_reason)
{
    const struct child_plan plan = {
        .argv = (const char *[]){"perf", "stat", "--event", SYSTEM_CALLS, "--output", "/dev/null", "true",
                                 NULL},
        .log = "/dev/null",
        .death_signal = SIGKILL,
    };
    char *said = child_output(plan, END_MS, 4096);
    if (!said)
        snprintf(ret_reason, REASON_SIZE, "perf (Debian's package linux-perf) cannot count " SYSTEM_CALLS);
    free(said);
    return said != NULL;
}

bool calls_start(pid_t pid, const char *dir, struct child *ret_counter)
{
    char path[PATH_MAX + 16], id[24];
    counts_file(dir, path);
    snprintf(id, sizeof id, "%d", (int)pid);
    const struct child_plan plan = {
        .argv = (const char *[]){"perf", "stat", "--field-separator", ",", "--event", SYSTEM_CALLS, "--pid",
                                 id, "--output", path, NULL},
        .death_signal = SIGKILL,
    };
    if (!child_start(&plan, ret_counter)) {
        complain("cannot start perf: %s", strerror(errno));
        return false;
    }
    if (!child_wait(ret_counter, SETTLE_MS, true))
        return true;
    if (!interrupted())
        complain("perf has ended by itself");
    return false;
}

/* The first line that begins with a number, which it must. */
static bool read_count(const char *path, int64_t *ret_count)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "%" SCNd64 ",", ret_count) == 1;
    if (file)
        fclose(file);
    return found;
}

bool calls_end(struct child *counter, const char *dir, int64_t *ret_calls)
{
    char path[PATH_MAX + 16];
    counts_file(dir, path);
    child_signal(counter, SIGINT);
    bool ended = child_wait(counter, END_MS, true);
    child_stop(counter, 0);
    if (ended && read_count(path, ret_calls))
        return true;
    if (!interrupted())
        complain("perf has counted nothing");
    return false;
}

bool allocations_count_begin(void)
{
    return setenv("LD_PRELOAD", ALLOCATION_COUNTER, 1) == 0;
}

void allocations_count_end(void)
{
    unsetenv("LD_PRELOAD");
}

/* The calls of a function from a line of the counter's table, "\033[00;34m malloc|\033[0m   123 …"; 0: it is not its line. */
static int64_t calls_of(const char *function, const char *line)
{
    int64_t calls = 0;
    const char *name = strstr(line, function);
    if (!name || (name > line && name[-1] != ' ' && name[-1] != 'm')) /* "realloc|" is no "alloc|" */
        return 0;
    name += strlen(function);
    if (*name == '\033')
        name += strcspn(name, "m") + 1;
    return sscanf(name, "%" SCNd64, &calls) == 1 ? calls : 0;
}

bool allocations_read(const char *log, int64_t *ret_allocations)
{
    char line[512];
    FILE *file = fopen(log, "re");
    *ret_allocations = 0;
    while (file && fgets(line, sizeof line, file))
        *ret_allocations += calls_of("malloc|", line) + calls_of("calloc|", line) +
                            calls_of("realloc|", line);
    if (file)
        fclose(file);
    if (*ret_allocations > 0)
        return true;
    complain("the service has not told how often it allocated");
    return false;
}
