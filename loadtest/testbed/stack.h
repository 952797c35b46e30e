/* The private stack: the script that starts and stops real servers of our own on loopback. */
#ifndef OVERSELL_LOADTEST_TESTBED_STACK_H
#define OVERSELL_LOADTEST_TESTBED_STACK_H

#include "loadtest/testbed/testbed.h"

enum { STACK_QUIET = 1, STACK_INTERRUPTIBLE = 2 };

/* Runs the script with VERB, "up" or "down", for the servers of NAMES ("redis", "postgres", …; ended by NULL), with ENV added
 * to their environment (NULL: nothing). Its output goes into the log of TESTBED. FLAGS: do not say why it failed; return
 * false at an interrupt. False, having said why on stderr. */
bool stack_run(const struct testbed *testbed, const char *verb, const char *const *names,
               const char *const *env, unsigned flags);
/* The two halves of it: the caller may do something else between them. */
bool stack_begin(const struct testbed *testbed, const char *verb, const char *const *names,
                 const char *const *env, struct child *ret_child);
bool stack_end(const struct testbed *testbed, const char *verb, struct child *child, unsigned flags);

/* The address that the stack prints as the environment variable VARIABLE, to be freed; NULL, having said why on stderr. For servers
 * that are none of struct lock_config. */
char *stack_address(const struct testbed *testbed, const char *variable);

/* Starts the servers that SETTINGS need, and reads their addresses. Strategies whose server cannot be started are unavailable;
 * without the shop's database all fails. False, having said why on stderr. */
bool stack_open(struct testbed *testbed, const struct testbed_settings *settings);
/* Stops all servers, and removes their data. */
void stack_close(struct testbed *testbed);

#endif
