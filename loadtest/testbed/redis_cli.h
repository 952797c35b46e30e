/* What an operator would type into redis-cli, for a Redis server of the private stack. */
#ifndef OVERSELL_LOADTEST_TESTBED_REDIS_CLI_H
#define OVERSELL_LOADTEST_TESTBED_REDIS_CLI_H

#include <stdbool.h>

enum { REDIS_COMMAND_MAX = 900 };

/* Sends a command, words with blanks between, to the server at URL (redis://default:PASSWORD@127.0.0.1:PORT; of several with
 * commas between: the one at PLACE, from 0) and waits for its reply, for 2 s at most. False: it did not answer, or refused. */
__attribute__((format(printf, 3, 4))) bool redis_tell(const char *url, int place, const char *format, ...);
/* The parts of such an address; buffers of 128 bytes and a port, or false. */
bool redis_address(const char *url, int place, char *ret_password, int *ret_port);

#endif
