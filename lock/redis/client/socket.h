/* A socket to a Redis server, and waiting on it. */
#ifndef OVERSELL_LOCK_REDIS_CLIENT_SOCKET_H
#define OVERSELL_LOCK_REDIS_CLIENT_SOCKET_H

#include "base/clock.h"
#include "lock/redis/client/url.h"

#include <stdint.h>

/* Connects before UNTIL (monotonic_us) a socket that does not block and is not inherited by programs that are run
 * later; -1 with the reason, in static storage, in RET_ERROR. Looking up a host's name is the one wait that keeps no
 * limit of ours, since glibc's look-up takes none. */
int redis_socket(const struct redis_url *url, int64_t until_us, const char **ret_error);

/* Sends all of it before UNTIL, without SIGPIPE; false with errno. */
bool redis_socket_send(int fd, const char *bytes, size_t size, int64_t until_us);

/* Waits for EVENTS of poll(2). False with errno; ETIMEDOUT when UNTIL has come. */
bool redis_socket_wait(int fd, short events, int64_t until_us);

#endif
