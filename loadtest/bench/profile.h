/* Measures with perf which functions of a process use its CPU time. */
#ifndef OVERSELL_LOADTEST_BENCH_PROFILE_H
#define OVERSELL_LOADTEST_BENCH_PROFILE_H

#include "loadtest/testbed/child.h"

/* perf can be run; says on stderr if it cannot. */
bool profile_valid(void);
/* Starts to record the process, into a file in DIR. */
bool profile_start(pid_t pid, const char *dir, struct child *ret_recorder);
/* Ends the recording and prints on stderr, under TITLE, which functions took the time. */
bool profile_end(struct child *recorder, const char *dir, const char *title);

#endif
