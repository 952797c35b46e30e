/* lockrun, which runs a command while it holds a lock: what its files share. */
#ifndef OVERSELL_TOOLS_LOCKRUN_MAIN_H
#define OVERSELL_TOOLS_LOCKRUN_MAIN_H

#include "lock/registry.h"

#include <signal.h>

enum exit_status {
    EXIT_USAGE = 2,
    EXIT_AWAY = 69,     /* EX_UNAVAILABLE of sysexits.h: the lock's server does not serve */
    EXIT_OURS = 70,     /* EX_SOFTWARE: out of memory, threads or processes */
    EXIT_NOT_GOT = 75,  /* EX_TEMPFAIL: not got in time */
    EXIT_CANNOT = 126,  /* as shells have it: found, but not executable … */
    EXIT_MISSING = 127, /* … and not found */
    EXIT_SIGNAL = 128,  /* … and the number of the signal that ended it */
};

struct lockrun_options {
    const struct lock_driver *lock;
    const char *name;
    int64_t ttl_ms, wait_ms;
    bool no_renew;
    char **command;
};

/* Reads the command line. False: it has said what there is to say, and *RET_STATUS is what to exit with. */
bool lockrun_read_options(int argc, char *argv[], struct lockrun_options *ret_options, int *ret_status);

/* To be called before anything is opened: what is open now is passed on to the command, and nothing else. */
void lockrun_note_inherited(void);
/* Blocks the signals that are for the command in this thread and in all that it starts; those that were blocked before are
 * in *RET_BEFORE. Until the command runs they end lockrun, afterwards a thread passes them on. False: no thread. */
bool lockrun_take_signals(sigset_t *ret_before);
/* Starts the command, whose signals are blocked as MASK says: 0, or what to exit with, having said why. */
int lockrun_start(char *const command[], const sigset_t *mask);
/* Sends the signal NUMBER to the command; does nothing where it has ended. Any thread. */
void lockrun_signal(int number);
/* Has the command ended within MS? Then its exit status, as shells have it, is in *RET_STATUS. */
bool lockrun_has_ended(int64_t ms, int *ret_status);

#endif
