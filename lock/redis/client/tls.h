/* TLS on a connection to a Redis server (rediss://), where this build's hiredis can. */
#ifndef OVERSELL_LOCK_REDIS_CLIENT_TLS_H
#define OVERSELL_LOCK_REDIS_CLIENT_TLS_H

#include "base/clock.h"
#include "lock/lock_driver.h"

#include <hiredis/hiredis.h>

/* What this build lacks for TLS, in a sentence; NULL where it lacks nothing. */
const char *redis_tls_lacks(void);

/* Shakes hands over CONTEXT, which is connected to HOST and does not block, before UNTIL (monotonic_us).
 * LOCK_REFUSED: the server's certificate is not to be trusted, or is another host's. LOCK_AWAY: anything else. The
 * reason, in static storage, is in RET_ERROR. */
enum lock_status redis_tls_start(redisContext *context, const char *host, int64_t until_us,
                                 const char **ret_error);

/* redis_socket_send, on a connection that has TLS. */
bool redis_tls_send(redisContext *context, const char *bytes, size_t size, int64_t until_us);

#endif
