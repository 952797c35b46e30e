/* Observes a service with perf: counts its system calls, or records which functions use its CPU time. The C library counts its
 * allocations. */
#ifndef OVERSELL_LOADTEST_BENCH_PERF_H
#define OVERSELL_LOADTEST_BENCH_PERF_H

#include "loadtest/bench/threads.h"
#include "loadtest/process/child.h"

/* perf can count system calls here; if not, RET_REASON (REASON_SIZE bytes) says why. */
bool calls_countable(char *ret_reason);
/* Starts to count the system calls of the process and its threads, into a file in DIR. False, having said why on stderr unless
 * it was an interrupt. */
bool calls_start(pid_t pid, const char *dir, struct child *ret_counter);
/* Ends the counting. False as above. */
bool calls_end(struct child *counter, const char *dir, int64_t *ret_calls);

/* Programs that start between these calls write their allocation counts to stderr when they exit. */
bool allocations_count_begin(void);
void allocations_count_end(void);
/* Reads it from the log of one that has ended: calls of malloc, calloc and realloc. False, having said why on stderr. */
bool allocations_read(const char *log, int64_t *ret_allocations);

/* perf can be run; says on stderr if it cannot. */
bool profile_valid(void);
/* Starts to record the process, into a file in DIR. False, having said why on stderr. */
bool profile_start(pid_t pid, const char *dir, struct child *ret_recorder);
/* Ends the recording and prints on stderr, under TITLE, which functions took the time. False, having said why on stderr unless
 * it was an interrupt. */
bool profile_end(struct child *recorder, const char *dir, const char *title);

#endif
