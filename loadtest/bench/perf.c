/* Observes a service with perf: counts its system calls, or records which functions use its CPU time. The C library counts its
 * allocations. */
#include "loadtest/bench/perf.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM_CALLS "raw_syscalls:sys_enter"
#define ALLOCATION_COUNTER "libmemusage.so" /* comes with glibc */
#define SAMPLES_PER_S "997"
#define LEAST_PERCENT "0.7" /* of a function that is printed */
#define END_MS 10000
#define SETTLE_MS 500 /* until perf has found all threads */
#define REPORT_MS 60000
#define REPORT_MAX (1u << 20)
#define WORDS_MAX 12

/* ---- perf ------------------------------------------------------------------------------------------------------ */

static void data_file(const char *dir, char *ret_path)
{
    snprintf(ret_path, PATH_MAX + 16, "%s/perf.data", dir);
}

/* What perf prints, to be freed; NULL if it fails. WORDS: its arguments, ended by NULL. */
static char *perf_output(const char *const *words, int64_t ms)
{
    return child_output((struct child_plan){.argv = words, .log = "/dev/null", .death_signal = SIGKILL}, ms,
                        REPORT_MAX);
}

/* Starts perf with WORDS, ended by NULL, on the process, writing into a file in DIR. */
static bool perf_start(const char *const *words, pid_t pid, const char *dir, struct child *ret_perf)
{
    char path[PATH_MAX + 16], log[PATH_MAX + 16], id[24];
    const char *argv[WORDS_MAX] = {"perf"};
    size_t count = 1;
    data_file(dir, path);
    snprintf(log, sizeof log, "%s/perf.log", dir);
    snprintf(id, sizeof id, "%d", (int)pid);
    for (; *words && count < WORDS_MAX - 5; words++)
        argv[count++] = *words;
    const char *const rest[] = {"--pid", id, "--output", path};
    memcpy(&argv[count], rest, sizeof rest);
    const struct child_plan plan = {.argv = argv, .log = log, .death_signal = SIGKILL};
    if (child_start(&plan, ret_perf))
        return true;
    complain("cannot start perf: %s", strerror(errno));
    return false;
}

/* Lets it write its file; false if it does not end. */
static bool perf_end(struct child *perf)
{
    child_signal(perf, SIGINT);
    bool ended = child_wait(perf, END_MS, true);
    child_stop(perf, 0);
    return ended;
}

static bool fail(const char *words)
{
    if (!interrupted())
        complain("%s", words);
    return false;
}

/* ---- system calls ---------------------------------------------------------------------------------------------- */

bool calls_countable(char *ret_reason)
{
    char *said = perf_output(
        (const char *[]){"perf", "stat", "--event", SYSTEM_CALLS, "--output", "/dev/null", "true", NULL},
        END_MS);
    if (!said)
        snprintf(ret_reason, REASON_SIZE,
                 "perf cannot count " SYSTEM_CALLS ": install the package linux-perf");
    free(said);
    return said != NULL;
}

bool calls_start(pid_t pid, const char *dir, struct child *ret_counter)
{
    static const char *const WORDS[] = {"stat", "--field-separator", ",", "--event", SYSTEM_CALLS, NULL};
    return perf_start(WORDS, pid, dir, ret_counter) &&
           (!child_wait(ret_counter, SETTLE_MS, true) || fail("perf exited early"));
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
    data_file(dir, path);
    return (perf_end(counter) && read_count(path, ret_calls)) || fail("perf counted nothing");
}

/* ---- allocations ----------------------------------------------------------------------------------------------- */

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
    complain("the service did not report its number of allocations");
    return false;
}

/* ---- profiles -------------------------------------------------------------------------------------------------- */

bool profile_valid(void)
{
    char *version = perf_output((const char *[]){"perf", "--version", NULL}, END_MS);
    if (!version)
        complain("--profile needs perf: install the package linux-perf");
    free(version);
    return version != NULL;
}

bool profile_start(pid_t pid, const char *dir, struct child *ret_recorder)
{
    return perf_start((const char *[]){"record", "--freq", SAMPLES_PER_S, NULL}, pid, dir, ret_recorder);
}

bool profile_end(struct child *recorder, const char *dir, const char *title)
{
    char path[PATH_MAX + 16];
    data_file(dir, path);
    char *report = !perf_end(recorder)
                       ? NULL
                       : perf_output((const char *[]){"perf", "report", "--stdio", "--input", path, "--sort",
                                                      "dso,symbol", "--percent-limit", LEAST_PERCENT, NULL},
                                     REPORT_MS);
    progress_wipe();
    if (!report)
        return fail("perf failed, or its report is too long");
    fprintf(stderr, "\nCPU time of the service: %s\n%s", title, report);
    free(report);
    return true;
}
