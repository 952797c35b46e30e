/* Measures with perf which functions of a process use its CPU time. */
#include "loadtest/bench/profile.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/progress.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES_PER_S "997"
#define LEAST_PERCENT "0.7" /* of a function that is printed */
#define REPORT_MS 60000
#define REPORT_MAX (1u << 20)
#define END_MS 10000

static void data_file(const char *dir, char *ret_path)
{
    snprintf(ret_path, PATH_MAX + 16, "%s/perf.data", dir);
}

bool profile_valid(void)
{
    const struct child_plan plan = {.argv = (const char *[]){"perf", "--version", NULL},
                                    .death_signal = SIGKILL};
    char *version = child_output(plan, END_MS, 4096);
    if (!version)
        complain("--profile needs perf (Debian's package is linux-perf)");
    free(version);
    return version != NULL;
}

bool profile_start(pid_t pid, const char *dir, struct child *ret_recorder)
{
    char path[PATH_MAX + 16], log[PATH_MAX + 16], id[24];
    data_file(dir, path);
    snprintf(log, sizeof log, "%s/perf.log", dir);
    snprintf(id, sizeof id, "%d", (int)pid);
    const struct child_plan plan = {
        .argv = (const char *[]){"perf", "record", "--freq", SAMPLES_PER_S, "--pid", id, "--output", path,
                                 NULL},
        .log = log,
        .death_signal = SIGKILL,
    };
    return child_start(&plan, ret_recorder);
}

bool profile_end(struct child *recorder, const char *dir, const char *title)
{
    char path[PATH_MAX + 16];
    data_file(dir, path);
    child_signal(recorder, SIGINT);
    bool ended = child_wait(recorder, END_MS, true);
    child_stop(recorder, 0);
    const struct child_plan plan = {
        .argv = (const char *[]){"perf", "report", "--stdio", "--input", path, "--sort", "dso,symbol",
                                 "--percent-limit", LEAST_PERCENT, NULL},
        .log = "/dev/null",
        .death_signal = SIGKILL,
    };
    char *report = ended ? child_output(plan, REPORT_MS, REPORT_MAX) : NULL;
    progress_wipe();
    if (report)
        fprintf(stderr, "\nWhere the service's CPU time went: %s\n%s", title, report);
    else if (!interrupted())
        complain("perf has failed, or found too much to tell");
    free(report);
    return report != NULL;
}
