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
/* From now on interrupted() says 0 for MS milliseconds after the signal, unless a second one comes: so that the command can finish what runs
 * and what its result needs. */
void interrupt_grace(int64_t ms);
/* The signal that has come, or 0: also within that time. */
int interrupt_came(void);
/* A part of the result has been printed. */
void interrupt_shown(void);
/* The exit status of the command: STATUS, or after an interrupt 128 and the number of its signal. Says on stderr if the interrupt came before
 * interrupt_shown. */
int interrupt_status(int status);

#endif
