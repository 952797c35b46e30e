/* What the kernel says of a process: its memory and its open files. */
#ifndef OVERSELL_LOADTEST_TESTBED_PROCESS_H
#define OVERSELL_LOADTEST_TESTBED_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A line of /proc/PID/status, such as "VmRSS" (all that is resident) or "RssAnon" (of that, heap and stacks), in bytes. False,
 * having said why on stderr. */
bool process_memory(pid_t pid, const char *what, int64_t *ret_bytes);
/* How many file descriptors are open. False, having said why on stderr. */
bool process_files(pid_t pid, int64_t *ret_count);

#endif
