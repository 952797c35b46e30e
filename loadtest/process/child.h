/* Child processes that cannot outlive the load test: started in their own process group, and ended with it. */
#ifndef OVERSELL_LOADTEST_PROCESS_CHILD_H
#define OVERSELL_LOADTEST_PROCESS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All zero: no child. */
struct child {
    pid_t pid;  /* 0: none, or ended and collected */
    int status; /* once ended: as waitpid gives it */
    int out;    /* the read end of its stdout, non-blocking; 0: none */
};

struct child_plan {
    const char *const *argv; /* ended by NULL; argv[0] is looked up in PATH */
    const char *const
        *env;        /* "NAME=value" added to ours; a bare "NAME" is taken away; NULL or ended by NULL */
    const char *log; /* file that stderr, and stdout unless it is piped, is appended to; NULL: our stderr */
    const char *folder; /* that it runs in; NULL: ours */
    bool pipe_out;      /* hand out its stdout in child.out */
    int in;             /* file descriptor for its stdin; 0: /dev/null */
    int death_signal;   /* the signal that it gets if this process dies */
};

/* Starts it. False, with errno, if there can be no process; a program that cannot be run says so in the log
 * and ends with 127. */
bool child_start(const struct child_plan *plan, struct child *ret_child);
/* True once it has ended (or never was); then it is collected and its status known. */
bool child_ended(struct child *child);
/* Waits for its end for MS at most, or until an interrupt if INTERRUPTIBLE; false if it still runs. */
bool child_wait(struct child *child, int64_t ms, bool interruptible);
/* Sends a signal to its whole group. */
void child_signal(const struct child *child, int signal_number);
/* SIGTERM, after GRACE_MS SIGKILL, to its whole group; collected when this returns. */
void child_stop(struct child *child, int64_t grace_ms);
/* "exit status 2", "killed by signal 9 (Killed)"; BUFFER of 64 bytes, returned. */
const char *child_status_text(const struct child *child, char *buffer);

/* Runs PLAN to its end and returns all it wrote on stdout, with a 0 behind, to be freed; NULL (after MS, past
 * MAX bytes, on a failure of the child, on an interrupt). */
char *child_output(struct child_plan plan, int64_t ms, size_t max);
/* Prints the last LINES lines of a log on stderr, indented. */
void print_log_tail(const char *path, int lines);

#endif
