/* What the kernel says of a process: its memory, its open files, and whether it has work. */
#ifndef OVERSELL_LOADTEST_PROCESS_USAGE_H
#define OVERSELL_LOADTEST_PROCESS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A line of /proc/PID/status, such as "VmRSS" (all that is resident) or "RssAnon" (of that, heap and stacks), in bytes. False,
 * having said why on stderr. */
bool process_memory(pid_t pid, const char *what, int64_t *ret_bytes);
/* How many file descriptors are open. False, having said why on stderr. */
bool process_files(pid_t pid, int64_t *ret_count);
/* Does a thread of a process of GROUP, or one of this process beside the caller, run, wait for a processor or read a disk? If not, all of
 * them wait for something else to happen. What cannot be read counts as waiting. */
bool processes_work(pid_t group);

#endif
