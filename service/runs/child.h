/* A child process of the service, the load test or the explorer, which the kernel ends when its thread ends. */
#ifndef OVERSELL_SERVICE_RUNS_CHILD_H
#define OVERSELL_SERVICE_RUNS_CHILD_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_child {
    pid_t pid;
    int in;       /* write end of its stdin; -1: that is /dev/null */
    int out, err; /* read ends of its stdout and stderr, non-blocking */
};

/* Starts the program at ARGV[0], a path, with the environment ENVP, in its own process group; TALKS: its stdin is a
 * pipe as well. It gets SIGTERM when the calling thread ends, which must therefore be the one that waits for it. False with
 * errno. */
bool run_child_start(const char *const *argv, const char *const *envp, bool talks,
                     struct run_child *ret_child);

/* Waits for its end until DEADLINE (monotonic_us), then kills its group; closes the pipes. Returns its status as
 * waitpid gives it. */
int run_child_end(struct run_child *child, int64_t deadline_us);

#endif
