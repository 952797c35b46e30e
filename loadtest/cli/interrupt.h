/* Turns SIGINT (Ctrl-C) and similar signals into a flag. Every wait checks it, so the program can clean up and exit. */
#ifndef OVERSELL_LOADTEST_CLI_INTERRUPT_H
#define OVERSELL_LOADTEST_CLI_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

/* From now on SIGINT, SIGTERM and SIGHUP only raise the flag, and a closed pipe is an error, not a death. */
void interrupt_watch(void);
/* The signal that has come, or 0. */
int interrupted(void);
/* Sleeps; false as soon as the flag is raised. */
bool sleep_unless_interrupted(int64_t ms);

#endif
